"""Interactive views of a table, for notebooks."""

from iceexplore.widgets._explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
