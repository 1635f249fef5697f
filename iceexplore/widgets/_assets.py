"""The scripts and styles of the widgets: small ES modules, put together here.

A widget's script is loaded from a blob, from which relative imports fail; so the modules are joined into one, in
the order of their imports. There is no build step and nothing is fetched.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["script", "style_sheet"]

_IMPORT = re.compile(r'^import .* from "\./[a-z]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|class)", re.MULTILINE)


def _read(name: str) -> str:
    return (files("iceexplore.widgets") / "static" / name).read_text(encoding="utf-8")


@cache
def script(*names: str) -> str:
    """One module out of several, each after those that it imports; the last one has the default export."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in names]
    return "\n".join(f"// {name}\n{part}" for name, part in zip(names, parts, strict=True))


@cache
def style_sheet(name: str) -> str:
    """A style sheet."""
    return _read(name)
