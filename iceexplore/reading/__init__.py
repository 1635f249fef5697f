"""Rows: data files read with their deletes applied, in pyarrow alone."""

__all__: list[str] = []
