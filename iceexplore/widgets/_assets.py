"""The scripts and styles of the widgets: small ES modules, put together here.

A widget's script is loaded from a blob, from which relative imports fail; so a module and those that it imports are
joined into one, each a scope of its own, without its remarks and indents: the text is sent with every widget. There is
no build step and nothing is fetched.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["bare_script", "later_script", "script", "style_sheet"]

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z_]+)\.js";\n', re.MULTILINE)
#: What is for people: remarks, and indents. No string of ours goes over several lines, or has what begins a remark.
_REMARK = re.compile(r"^[ \t]*(?://.*\n|\n)?|(?<=[;,{}()\[\]]) // .*$", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) ([A-Za-z_$][\w$]*)", re.MULTILINE)


def _read(name: str) -> str:
    return (files("iceexplore.widgets") / "static" / name).read_text(encoding="utf-8")


def bare_script(*names: str) -> str:
    """Modules and those that they import, as ``const $name = {what it exports}``: without an import or export."""
    return "\n".join(_modules(*names).values())


@cache
def _modules(*names: str) -> dict[str, str]:
    """By name, each after those that it imports."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        source = _read(f"{name}.js")
        for found in _IMPORT.finditer(source):
            add(found[2])
        body = _IMPORT.sub(lambda m: f"const {m[1].replace(' as ', ': ')} = ${m[2]};\n", source)
        exported = ", ".join(m[2] for m in _EXPORT.finditer(source))
        body = _EXPORT.sub(r"\1 \2", body)
        body = _REMARK.sub("", body)
        parts[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"

    for name in names:
        add(name)
    return parts


@cache
def script(*views: str) -> str:
    """The module of a widget that shows these views, one below the other, in the shell that all widgets share.

    Parameters
    ----------
    views
        ``"module.function"``; the function takes the model and returns an element.
    """
    names = [view.split(".") for view in views]
    called = ", ".join(f"${module}.{function}" for module, function in names)
    modules = _modules("shell", *(module for module, _ in names))
    given = f"const $given = {{ {', '.join(f'${name}' for name in modules)} }};"  # for what comes later
    joined = "\n".join([*modules.values(), given])
    return f"{joined}\nexport default {{ render: (context) => $shell.shell(context, [{called}]) }};\n"


@cache
def later_script(view: str, given: str) -> str:
    """The module of a view that a widget shows only when it is asked for: what the widget's own script lacks of it.

    Its default export takes the modules that are there, ``$given``, and returns the view's function.

    Parameters
    ----------
    view, given
        ``"module.function"``, of the view and of the widget's own.
    """
    module, function = view.split(".")
    there = _modules("shell", given.split(".")[0])
    lacking = [text for name, text in _modules(module).items() if name not in there]
    names = ", ".join(f"${name}" for name in there)
    return "\n".join([f"export default ({{ {names} }}) => {{", *lacking, f"return ${module}.{function};\n}};\n"])


@cache
def style_sheet() -> str:
    """The one style sheet of all widgets."""
    return _read("iceexplore.css")
