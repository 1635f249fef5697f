"""Arrow tables as data frames in which no digit is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from iceexplore.render import shown_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["to_frame"]


def to_frame(table: pa.Table) -> pd.DataFrame:
    """The table as a data frame with Arrow-backed columns: 64-bit ids stay whole beside nulls, nested values Arrow.

    Its values are somebody else's text: printed, it shows signs for what would act.
    """
    import pandas as pd

    return shown_frame(cast("pd.DataFrame", table.to_pandas(types_mapper=pd.ArrowDtype)))
