"""The layout's options for people who choose: each with its default, what may be given, and its own documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any, get_args, get_type_hints

from iceexplore.commits.model._options import LEAST, LayoutOptions

__all__ = ["OptionDoc", "option_docs"]

_SECTION = "Attributes\n----------\n"


@dataclass(frozen=True)
class OptionDoc:
    """An option of `LayoutOptions`.

    Attributes
    ----------
    name
        The keyword.
    default
        What it is where it is not given.
    choices
        What may be given, where that is one of some words.
    least, most
        The limits of a number; None: none.
    text
        What `LayoutOptions` says of it.
    """

    name: str
    default: Any
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    text: str = ""


def option_docs(format_version: int) -> tuple[OptionDoc, ...]:
    """The options of a format version, in their order, but ``format_version`` and ``relaxed``; none below version 4.

    Raises
    ------
    OptionError
        No such format version.
    """
    default, hints, texts = LayoutOptions.of(format_version), get_type_hints(LayoutOptions), _texts()
    if not default.has_root_manifest:
        return ()
    out = []
    for field in fields(LayoutOptions):
        if field.name in ("format_version", "relaxed"):
            continue
        value = getattr(default, field.name)
        choices: tuple[str, ...] = tuple(c for c in get_args(hints[field.name]) if isinstance(c, str))
        if field.name == "dialect":
            choices = ("v4-proposal", "v4-java")
        least, most = (0, 1) if field.name == "rewrite_leaf_at" else (LEAST.get(field.name), None)
        out.append(OptionDoc(field.name, value, choices, least, most, texts.get(field.name, "")))
    return tuple(out)


def _texts() -> dict[str, str]:
    """By option its paragraph in the documentation of `LayoutOptions`; empty where Python leaves documentation out."""
    section = cleandoc(LayoutOptions.__doc__ or "").partition(_SECTION)[2]
    out: dict[str, str] = {}
    for found in re.finditer(r"^(\w[\w, ]*)\n((?: {4}.*\n?|\n)+)", section + "\n", re.MULTILINE):
        text = " ".join(found[2].split()).replace("``", "").replace("`", "")
        out |= dict.fromkeys((name.strip() for name in found[1].split(",")), text)
    return out
