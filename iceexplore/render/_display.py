"""Display hooks for records, so that records need not import the code that draws them.

A record calls ``line_of(self)``, and the module that draws such records registers the function that returns the line or
the card.
"""

from __future__ import annotations

from functools import singledispatch

from iceexplore.render._card import Card

__all__ = ["card_of", "line_of"]


@singledispatch
def card_of(record: object) -> Card:
    """Return the card of a record; ``@card_of.register`` adds a kind of record."""
    raise TypeError(f"no card is registered for {type(record).__name__}")


@singledispatch
def line_of(record: object) -> str:
    """Return a record as one line of escaped text; ``@line_of.register`` adds a kind of record."""
    raise TypeError(f"no line is registered for {type(record).__name__}")
