"""The command line: ``iceexplore check``, ``show``, ``tree``, ``inspect`` and the like."""

from iceexplore.cli._main import main

__all__ = ["main"]
