"""Classify problems, by code and field, into the ways in which tables break, and grade their effects.

A code may cover several ways of breaking; the field in the problem's evidence distinguishes them.
"""

from __future__ import annotations

import re
from functools import cache

from iceexplore.errors._kinds import PROBLEM_KINDS, Effect, Severity

__all__ = ["narrowed"]

#: For each code: a pattern for the whole field name, the effect, and the modes. The first pattern that matches counts.
_BY_FIELD: dict[str, tuple[tuple[str, Effect, tuple[int, ...]], ...]] = {
    "metadata-invalid": (
        (r"current-snapshot-id|current-schema-id|default-spec-id", "fail", (16,)),
        (r"snapshot-id@ref", "fail", (16,)),
        (r"snapshot-id", "fail", (17,)),
        (r"sequence-number|last-sequence-number", "fail", (18,)),
        (r"snapshot-log", "wrong", (19, 82)),
        (r"last-updated-ms|timestamp-ms", "untidy", (82,)),
        (r"metadata-log", "untidy", (20,)),
        (r"parent-snapshot-id", "untidy", (20,)),
        (r"id|field-id", "fail", (21, 72)),
        (r"next-row-id|first-row-id|added-rows|first_row_id", "wrong", (23,)),
        (r"schema-id", "wrong", (81,)),
        (r"sequence_number", "wrong", (18, 28)),
        (r"summary|operation|refs", "untidy", (71,)),
        (r"manifest-list", "fail", (3,)),
    ),
    "metadata-incomplete": (
        (r"parent-snapshot-id", "untidy", (20,)),
        (r"schema-id", "untidy", (81,)),
    ),
    "count-mismatch": (
        (r"50[456] .*", "wrong", (24,)),
        (r"501 .*", "fail", (25,)),
        (r"51[23] .*", "wrong", (24,)),
        (r"(103 )?record_count", "wrong", (33, 70)),
        (r"(104 )?file_size_in_bytes", "fail", (33,)),
        (r"(null|nan|value)_count of .*", "wrong", (35,)),
        (r"11[01] .*|109 .*|137 .*", "wrong", (35,)),
    ),
    "totals-differ": ((r"51[23] .*", "wrong", (24, 33)),),
    "bounds-untrue": (
        (r"507 .*", "wrong", (27,)),
        (r"file_path|(lower|upper)_bound of file_path.*", "wrong", (44,)),
        (r"12[58] .*", "wrong", (34,)),
    ),
    "sequence-number": (
        (r"516 .*", "wrong", (28,)),
        (r"515 .*", "wrong", (28,)),
        (r"3 .*", "wrong", (43, 28)),
    ),
    "file-twice": ((r"500 .*", "wrong", (31, 2)),),
    "file-corrupt": (
        (r"deletion-vector-v1|puffin", "fail", (48,)),
        (r"102 partition", "wrong", (38,)),
        (r"517 content", "wrong", (41,)),
        (r"502 .*", "wrong", (38,)),
        (r"134 .*|0 status", "wrong", (50, 85)),
        (r"schema", "fail", (74, 39)),
        (r"partition-spec|partition-spec-id|schema-id|content|format-version", "fail", (39, 84)),
    ),
    "entry-invalid": (
        (r"14[45] content_.*", "fail", (48,)),
        (r"147 .*", "fail", (52, 51)),
        (r"521 .*", "fail", (52,)),
        (r"143 .*", "wrong", (56,)),
        (r"134 .*", "wrong", (50, 41)),
        (r"158 .*|146 .*", "wrong", (85,)),
    ),
    "split-offsets-invalid": ((r"132 split_offsets order", "fail", (85, 37)),),
    "value-undecodable": ((r"102 partition|\d+", "wrong", (76,)),),
    "puffin-blob-invalid": ((r"cardinality|content_offset|referenced-data-file", "fail", (48,)),),
}


@cache
def _patterns(code: str) -> tuple[tuple[re.Pattern[str], Effect, tuple[int, ...]], ...]:
    return tuple((re.compile(text), effect, modes) for text, effect, modes in _BY_FIELD.get(code, ()))


def narrowed(code: str, field: str | None, severity: Severity | None = None) -> tuple[Effect, tuple[int, ...]]:
    """Return the effect and the modes of a problem.

    Parameters
    ----------
    severity
        The problem's own severity: metadata that readers tolerate (a warning of ``metadata-invalid`` or
        ``view-invalid``) is at most ``untidy``.

    Raises
    ------
    KeyError
        The code is not in the registry.
    """
    kind = PROBLEM_KINDS[code]
    effect, modes = kind.effect, kind.modes
    for pattern, its_effect, its_modes in _patterns(code):
        if field and pattern.fullmatch(field):
            effect, modes = its_effect, its_modes
            break
    if code in ("metadata-invalid", "view-invalid") and severity == "warning" and effect == "fail":
        effect = "untidy"
    return effect, modes
