"""Data frames of Arrow tables, without loss of digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.render import shown_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["to_frame"]


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return the table as a data frame with Arrow-backed columns: 64-bit ids stay exact even if a column has nulls.

    Values come from foreign files: when the frame is displayed, control characters in them are escaped.
    """
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return shown_frame(frame)
