"""Bind a filter in any of its forms to a schema."""

from __future__ import annotations

from iceexplore.errors import OptionError
from iceexplore.expressions._binding import Binder, Columns
from iceexplore.expressions._from_json import expression_from_json, is_json
from iceexplore.expressions._from_pyiceberg import conditions_of
from iceexplore.expressions._model import Expression, FilterLike
from iceexplore.expressions._parser import parse_filter
from iceexplore.expressions._unbound import Condition
from iceexplore.metadata import Schema

__all__ = ["bind_filter"]


def bind_filter(schema: Schema, where: FilterLike | Condition) -> Expression:
    """Convert a filter to an expression over field ids.

    Parameters
    ----------
    where
        Text, see `parse_filter`; the JSON of an expression as text or parsed, see `expression_from_json`; an unbound
        PyIceberg expression; or the result of `parse_filter`.

    Returns
    -------
    Expression
        The expression selects the rows for which the filter is true. Comparisons are exact: if the column's type lacks
        the literal as a value, the comparison is replaced by one with the nearest values of the type, or by true or
        false. A ``double`` is compared with the literal's nearest double, and so are the values of a ``float`` column,
        as in Spark (``f = 0.1`` never matches, ``f = 0.1F`` may); Python floats in a PyIceberg expression take the
        column's precision, as in Iceberg. A timestamp without zone is in UTC if compared with ``timestamptz``. NaN is
        not greater than any number (IEEE 754).

    Raises
    ------
    OptionError
        The text is not a filter, a name is not a column of the schema, a literal does not fit its column, or a
        condition cannot be evaluated on metadata and rows. The message shows the text with carets under the word.
    """
    if is_json(where):
        return expression_from_json(schema, where)
    if isinstance(where, str):
        condition = parse_filter(where)
    elif isinstance(where, Condition):
        condition = where
    else:
        condition = conditions_of(where)
    try:
        return Binder(Columns(schema)).bind(condition, True)
    except RecursionError:
        raise OptionError("the filter is nested too deeply for the remaining stack: simplify it") from None
