"""Bundle the widgets' scripts from small ES modules, and load their style sheet.

A widget's script is loaded from a blob, where relative imports fail. So a module and those that it imports are joined
into one, without imports, comments and whitespace. As all modules then share a scope, their top-level names must be
distinct. The script is sent with every widget and stored in notebooks that save widgets, so it is compressed to a
third of its size. There is no build step, and nothing is fetched.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from rjsmin import jsmin

__all__ = ["LOADER", "bare_script", "later_script", "script", "sent_later", "sent_script", "style_sheet"]

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([A-Za-z]+)\.js";\n', re.MULTILINE)
_NAME = re.compile(r"\w+")
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)

#: The module of every widget. It decompresses the script of the widget's view, which is a binary trait, and runs it.
#: `DecompressionStream` needs Chrome 80, Safari 16.4 or Firefox 113; other parts of the scripts need newer versions
#: anyway. The browser's developer tools list a decompressed script like any other. Widgets with the same script share
#: one module, which they find by the checksum of the script near the end of the gzip data.
LOADER = """\
const modules=new Map();
export default{async render(context){
const sent=context.model.get("script");
const checksum=sent.getUint32(sent.byteLength-8);
if(!modules.has(checksum)){
const stream=new Blob([sent]).stream().pipeThrough(new DecompressionStream("gzip"));
const text=await new Response(stream).text();
const at=URL.createObjectURL(new Blob([text],{type:"text/javascript"}));
modules.set(checksum,import(at));
}
return(await modules.get(checksum)).default.render(context);
}};
"""


@cache
def _read(name: str) -> str:
    return (files("iceexplore.widgets") / "static" / name).read_text(encoding="utf-8")


@cache
def _modules(*names: str) -> tuple[str, ...]:
    """Return the names of modules and their imports, dependencies first."""
    found: dict[str, None] = {}
    for name in names:
        imported = (module for _, module in _IMPORT.findall(_read(f"{name}.js")))
        found |= dict.fromkeys([*_modules(*imported), name])
    return tuple(found)


def _joined(names: Iterable[str]) -> str:
    source = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(f"{name}.js"))) for name in names)
    return str(jsmin(source))


def _lacked(names: Iterable[str], there: Iterable[str]) -> str:
    """Return the names that modules import from already loaded ones, as a JavaScript pattern: ``{a,b}``."""
    known = set(there)
    found = {
        name
        for module in names
        for imported, of in _IMPORT.findall(_read(f"{module}.js"))
        if of in known
        for name in _NAME.findall(imported)
    }
    return f"{{{','.join(sorted(found))}}}"


def bare_script(view: str) -> str:
    """Return a view's module and the modules that it imports as one script, which ends with a call of the view.

    The script has no import and export statements.

    Parameters
    ----------
    view
        ``"module.function"``; the function takes no arguments.
    """
    module, function = view.split(".")
    return f"{_joined(_modules(module))}\n{function}();\n"


@cache
def script(view: str, *later: str) -> str:
    """Return the module of a widget that shows a view within the shell that all widgets share.

    Parameters
    ----------
    view
        ``"module.function"``; the function takes the model and returns an element.
    later
        Views whose scripts are sent later (`later_script`). Names that those scripts import from modules of this one
        are passed to them in ``$given``.
    """
    module, function = view.split(".")
    there = _modules("shell", module)
    lacking = [name for one in later for name in _modules(one.split(".")[0]) if name not in there]
    given = f"const $given={_lacked(lacking, there)};\n" if later else ""
    return f"{_joined(there)}\n{given}export default{{render:context=>shell(context,{function})}};\n"


@cache
def later_script(view: str, given: str) -> str:
    """Return the module of a view that is sent when the view is first shown.

    It leaves out the modules that the widget's initial script contains. Its default export takes ``$given`` from that
    script and returns the view's function.

    Parameters
    ----------
    view, given
        ``"module.function"`` of the view, and of the view in the widget's initial script.
    """
    module, function = view.split(".")
    there = _modules("shell", given.split(".")[0])
    lacking = [name for name in _modules(module) if name not in there]
    return f"export default({_lacked(lacking, there)})=>{{{_joined(lacking)}\nreturn {function};}};\n"


@cache
def sent_script(view: str, *later: str) -> bytes:
    """Return `script` as it is sent: compressed, for `LOADER`."""
    return _compressed(script(view, *later))


@cache
def sent_later(view: str, given: str) -> bytes:
    """Return `later_script` as it is sent: compressed. The widget's initial script decompresses it."""
    return _compressed(later_script(view, given))


def _compressed(module: str) -> bytes:
    # No timestamp, so that equal modules give equal bytes.
    return gzip.compress(module.encode(), mtime=0)


@cache
def style_sheet() -> str:
    """Return the style sheet of all widgets."""
    return _read("iceexplore.css")
