"""A table that has every hostile string wherever a table can have a string."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import iceexplore as ix
from tests.helpers.hostile import HOSTILE

__all__ = ["TEXTS", "hostile_table"]

#: Files hold UTF-8, in which there are no lone surrogates.
TEXTS = [text.encode("utf-8", "replace").decode() for text in HOSTILE.values() if text]


def hostile_table(folder: Path) -> ix.Table:
    """Hostile texts as columns, refs, properties, partition values (first 40 characters), bounds and rows; v3."""
    names = [text.replace(".", "…") for text in TEXTS]  # a dot leads into a struct
    columns = dict.fromkeys(["id", "text", *names], "string")
    made = ix.empty(columns, partition_by="text", format_version=3)
    short = [text[:40] for text in TEXTS]  # a partition's value is a folder's name
    made.append(pd.DataFrame({"id": TEXTS, "text": short} | {name: [name] * len(TEXTS) for name in names}))
    made.row_delta(deletes={str(made.inspect.data_files()["file_path"][0]): [0]})
    made.set_properties({text: text for text in TEXTS})
    for text in TEXTS:
        made.branch(text)
    made.delete_where(partition={"text": short[0]})
    made.save(folder)
    made.close()
    return ix.open(folder)
