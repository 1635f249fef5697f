"""Add and remove virtual columns in a metadata document.

A virtual column is a function of a column, such as ``lower(name)``, for which manifests store statistics. The document
lists it among its ``expressions``, but no partition field references this expression. Virtual columns are described in
the V4 proposal, section "Why and how do we address having a global field ID space in V4?".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iceexplore.commits.added_files._from_records import refuse_half_characters
from iceexplore.commits.metadata_updates._document import Json, entries, with_values
from iceexplore.commits.metadata_updates._schema import without_history
from iceexplore.commits.metadata_updates._upgrade import last_field_id, uses_expressions
from iceexplore.errors import OptionError, RuleError, items_of, texts_of
from iceexplore.metadata import (
    Expression,
    TableMetadata,
    check_virtual_source,
    resolve_function,
    virtual_expressions,
)

__all__ = ["evolve_virtual_columns"]

_RULE = "virtual-columns"
_TERMS = "['lower(name)', 'bucket(16, id)']"


def evolve_virtual_columns(
    document: Mapping[str, Any], *, add: Iterable[str | tuple[str, str]] = (), remove: Iterable[str] = ()
) -> Json:
    """Return a document with virtual columns added or removed.

    A virtual column is a function of a column, such as ``lower(name)``. The function's values are not stored, only
    statistics of them: the manifest entry of a data file has their bounds and counts, and a root's entry for a manifest
    aggregates the statistics of the manifest's files. A filter on exactly this function uses the statistics to skip
    files and manifests. Files that are already in the table get the statistics only when they are rewritten.

    A virtual column gets an id from the same id space as columns. The id is never reused.

    Parameters
    ----------
    add
        ``"lower(name)"``, ``"char_length(name)"``, ``"bucket(16, id)"``, ``"truncate(4, s)"``; or a pair of such a term
        and a name. Default names are like those of partition fields (``id_bucket_16``), or ``lower_name`` for SQL
        functions.
    remove
        Virtual columns to remove, by name or by a term as in ``add``. Removals are applied before additions.

    Raises
    ------
    RuleError
        ``virtual-columns``: the table has no expressions, the function does not accept the column, the name or the
        function already exists, or there is no virtual column to remove.
    OptionError
        A term is not a function of a column, or an argument has the wrong type.
    """
    wanted = [_pair(item) for item in items_of("add", add, _TERMS)]
    gone = texts_of("remove", remove, "['lower_name']")
    if not wanted and not gone:
        return dict(document)
    if not uses_expressions(document):
        raise RuleError(
            _RULE,
            "the table has no expressions: virtual columns need format version 4 with the manifests of the proposal "
            "(dialect 'v4-proposal')",
        )
    metadata = without_history(document)
    held = {e.expr_id: e for e in virtual_expressions(metadata)}
    known = entries(document, "expressions")
    for text in gone:
        expr_id = _named(metadata, held, text)
        del held[expr_id]
        known = [e for e in known if e.get("expr-id") != expr_id]
    names = {name for name, _ in metadata.schema().walk()}
    names |= {f.name for s in metadata.partition_specs for f in s.fields}
    of_fields = [e for e in metadata.expressions if e.partition_field_id is not None]
    names |= {e.name for e in (*of_fields, *held.values()) if e.name}
    of_specs = {(f.transform, f.source_ids) for s in metadata.partition_specs for f in s.fields}
    same = of_specs | {(e.transform, e.source_ids) for e in held.values()}
    last = last_field_id(document, entries(document, "expressions"))
    for text, name in wanted:
        function, source_id, default = _function(metadata, text)
        if (function, (source_id,)) in same:
            raise RuleError(_RULE, f"{text!r} already exists, as a virtual column or a partition field")
        name = default if name is None else name
        if not name or name in names:
            raise RuleError(_RULE, f"{text!r} needs an unused name: {name!r} is {'empty' if not name else 'taken'}")
        last += 1
        same.add((function, (source_id,)))
        names.add(name)
        known.append({"expr-id": last, "expr": {"source-id": source_id, "transform": function}, "name": name})
    return with_values(document, expressions=known, last_column_id=last)


def _pair(item: object) -> tuple[str, str | None]:
    """Return the term of a virtual column to add, such as ``lower(name)``, and its name (None for the default name).

    ``item`` is the term alone, or a pair of the term and the name.

    Raises
    ------
    OptionError
        ``item`` is neither a string nor a pair of strings.
    """
    if isinstance(item, str):
        refuse_half_characters(item, "virtual column")
        return item, None
    if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(part, str) for part in item):
        for part in item:
            refuse_half_characters(part, "virtual column")
        return item[0], item[1]
    raise OptionError(
        f"{item!r} is not a virtual column: give a string such as 'lower(name)', or a pair of such a string and a name"
    )


def _named(metadata: TableMetadata, held: Mapping[int, Expression], text: str) -> int:
    """Return the id of a virtual column by its name, or by its term, such as ``lower(name)``.

    Parameters
    ----------
    held
        The expressions of the virtual columns, by id.

    Raises
    ------
    RuleError
        ``virtual-columns``: there is no such virtual column.
    """
    by_name = {e.name or f"expression_{i}": i for i, e in held.items()}
    if text in by_name:
        return by_name[text]
    try:
        function, source_id, _ = resolve_function(text, metadata.schema(), rule=_RULE)
    except (OptionError, RuleError):
        function, source_id = "", -1
    for expr_id, e in held.items():
        if (e.transform, e.source_ids) == (function, (source_id,)):
            return expr_id
    raise RuleError(_RULE, f"there is no virtual column {text!r}; existing ones: {', '.join(by_name) or 'none'}")


def _function(metadata: TableMetadata, text: str) -> tuple[str, int, str]:
    function, source_id, default = resolve_function(text, metadata.schema(), rule=_RULE)
    check_virtual_source(metadata.schema(), function, source_id, repr(text))
    return function, source_id, default
