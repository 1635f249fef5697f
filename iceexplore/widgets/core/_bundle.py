"""The scripts and styles of the widgets: small ES modules, put together here.

A widget's script is loaded from a blob, from which relative imports fail; so a module and those that it imports are
joined into one, without their imports, remarks and spaces. All modules share a scope then, so each name at the top of
one is its alone. The text is sent with every widget, and kept in notebooks that keep their widgets: packed, which takes
half of the room. There is no build step and nothing is fetched.
"""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from rjsmin import jsmin

__all__ = ["bare_script", "later_script", "packed", "script", "style_sheet"]

_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)

#: Browsers have `DecompressionStream` since Chrome 80, Safari 16.4 and Firefox 113, older than what the scripts need
#: anyway. What it makes of the bytes stands among a browser's sources as it would without.
_UNPACK = """\
const bytes=Uint8Array.from(atob("%s"),c=>c.charCodeAt());
const text=await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
const at=URL.createObjectURL(new Blob([text],{type:"text/javascript"}));
const made=await import(at);
URL.revokeObjectURL(at);
export default made.default;
"""


@cache
def _read(name: str) -> str:
    return (files("iceexplore.widgets") / "static" / name).read_text(encoding="utf-8")


@cache
def _modules(*names: str) -> tuple[str, ...]:
    """The names of modules and of those that they import, each after what it imports."""
    found: dict[str, None] = {}
    for name in names:
        imported = (module for _, module in _IMPORT.findall(_read(f"{name}.js")))
        found |= dict.fromkeys([*_modules(*imported), name])
    return tuple(found)


def _joined(names: Iterable[str]) -> str:
    source = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(f"{name}.js"))) for name in names)
    return str(jsmin(source))


def _lacked(names: Iterable[str], there: Iterable[str]) -> str:
    """What modules import of those that are there: ``{a,b}``."""
    known = set(there)
    found = {
        name
        for module in names
        for imported, of in _IMPORT.findall(_read(f"{module}.js"))
        if of in known
        for name in imported.split(", ")
    }
    return f"{{{','.join(sorted(found))}}}"


def bare_script(view: str) -> str:
    """The module of a view and those that it imports, without an import or export, and a call of the view.

    Parameters
    ----------
    view
        ``"module.function"``; the function takes nothing.
    """
    module, function = view.split(".")
    return f"{_joined(_modules(module))}\n{function}();\n"


@cache
def script(view: str, *later: str) -> str:
    """The module of a widget that shows a view in the shell that all widgets share.

    Parameters
    ----------
    view
        ``"module.function"``; the function takes the model and returns an element.
    later
        The views that it may show besides, whose scripts `later_script` makes. They find what they import of this one
        in ``$given``.
    """
    module, function = view.split(".")
    there = _modules("shell", module)
    lacking = [name for one in later for name in _modules(one.split(".")[0]) if name not in there]
    given = f"const $given={_lacked(lacking, there)};\n" if later else ""
    return f"{_joined(there)}\n{given}export default{{render:context=>shell(context,{function})}};\n"


@cache
def later_script(view: str, given: str) -> str:
    """The module of a view that a widget shows only when it is asked for: what the widget's own script lacks of it.

    Its default export takes what the widget's script has, ``$given``, and returns the view's function.

    Parameters
    ----------
    view, given
        ``"module.function"``, of the view and of the widget's own.
    """
    module, function = view.split(".")
    there = _modules("shell", given.split(".")[0])
    lacking = [name for name in _modules(module) if name not in there]
    return f"export default({_lacked(lacking, there)})=>{{{_joined(lacking)}\nreturn {function};}};\n"


@cache
def packed(module: str) -> str:
    """A module that unpacks another one and has its default export: half as long."""
    # without a time: equal modules are equal packed
    return _UNPACK % b64encode(gzip.compress(module.encode(), mtime=0)).decode()


@cache
def style_sheet() -> str:
    """The one style sheet of all widgets."""
    return _read("iceexplore.css")
