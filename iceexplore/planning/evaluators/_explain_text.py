"""Why one term rules out a file or manifest, as a sentence: what is known, and what the term asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.expressions import Predicate
from iceexplore.metadata import Type, human_value, type_base
from iceexplore.planning.evaluators._column_metrics import Mask
from iceexplore.planning.evaluators._file_evaluator import Witness
from iceexplore.planning.evaluators._value_text import human_texts, shown

__all__ = ["said_by", "term_text"]

_WORDS = {
    "not-in": "not in", "is-null": "is null", "not-null": "is not null", "is-nan": "is NaN", "not-nan": "is not NaN",
    "starts-with": "begins with", "not-starts-with": "does not begin with",
}  # fmt: skip
#: As many literals of a list are named.
_NAMED = 5


def term_text(p: Predicate) -> str:
    """A predicate for people: as it was written, or made of its parts."""
    return p.text or _question(p, p.name or f"column {p.field_id}", "identity", p.type)


def said_by(
    p: Predicate, witness: Witness, by: str, rows: Any, thing: str
) -> tuple[pa.StringArray, pa.StringArray, pa.Array, pa.StringArray]:
    """Lower and upper bound, null count and the sentence, one of each per row.

    Parameters
    ----------
    p
        The term.
    by
        ``counts`` or ``bounds``: what of the witness rules the rows out.
    rows
        Rows of the evidence.
    thing
        ``file`` or ``manifest``.
    """
    e = witness.evidence.take(rows)
    lower, upper = (human_texts(b, witness.type, witness.transform) for b in (e.lower, e.upper))
    nulls = pa.nulls(len(e), pa.int64()) if e.null_count is None else e.null_count
    partition = witness.by == "partition"
    subject = f"{witness.name} of the {thing}'s partition{'s' if thing == 'manifest' else ''}" if partition else ""
    if by == "counts" and not e.exact:  # of a tuple the value says it all
        known = _counted(p, e.all_null, e.nothing, witness.name, subject)
    else:
        quoted = witness.type is not None and type_base(witness.type) == "string"
        known = _ranged(subject or witness.name, shown(lower, quoted), shown(upper, quoted))
    asked = term_text(p)
    if partition and witness.inclusive is not None and witness.transform != "identity":
        want = _question(witness.inclusive, witness.name, witness.transform, witness.type)
        asked = f"rows of {asked} are where {want}"
    else:
        asked = f"no row has {asked}"
    return lower, upper, nulls, pc.binary_join_element_wise(known, asked, ": ")


def _counted(p: Predicate, all_null: Mask, nothing: Mask, name: str, subject: str) -> pa.StringArray:
    who = subject or name
    if p.op == "is-null":
        return pa.array([f"{who} is never null"] * len(all_null))
    if p.op == "not-nan":
        return pa.array([f"{who} is always NaN"] * len(all_null))
    if p.op == "is-nan":
        return pc.if_else(pa.array(all_null), f"{who} is always null", f"{who} is never NaN")
    return pc.if_else(pa.array(all_null), f"{who} is always null", f"{who} is always null or NaN")


def _ranged(who: str, lower: pa.StringArray, upper: pa.StringArray) -> pa.StringArray:
    """``id is 10 to 20``, ``id is 10``, ``id is at least 10``, ``id is null``."""
    low, high = lower.is_valid(), upper.is_valid()
    one = pc.fill_null(pc.equal(lower, upper), False)
    exact = pc.binary_join_element_wise(f"{who} is ", lower, "")
    between = pc.binary_join_element_wise(f"{who} is ", lower, " to ", upper, "")
    least = pc.binary_join_element_wise(f"{who} is at least ", lower, "")
    most = pc.binary_join_element_wise(f"{who} is at most ", upper, "")
    cases = pc.make_struct(one, pc.and_(low, high), low, high)
    return pc.case_when(cases, exact, between, least, most, f"{who} is null")


def _question(p: Predicate, name: str, transform: str, kind: Type | None) -> str:
    word = _WORDS.get(p.op, p.op)
    if not p.literals:
        return f"{name} {word}"
    texts = _literals(p.literals[:_NAMED], transform, p.type if transform == "identity" else kind)
    more = f" and {len(p.literals) - _NAMED:,} more" if len(p.literals) > _NAMED else ""
    return f"{name} {word} {', '.join(texts)}{more}"


def _literals(values: Sequence[Any], transform: str, kind: Type | None) -> list[str]:
    if kind is None:
        return [str(v) for v in values]
    texts = [human_value(kind, transform, v) for v in values]
    return [f"'{t}'" for t in texts] if type_base(kind) == "string" else texts
