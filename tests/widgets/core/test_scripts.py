"""The widgets' scripts: their unit tests in `tests/javascript/`, and the joined modules that a browser gets."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from deno import find_deno_bin
from ipywidgets import DOMWidget

from iceexplore.widgets import Explorer
from iceexplore.widgets._explorer import _LATER, _VIEW
from iceexplore.widgets.core._bundle import LOADER, bare_script, later_script, script, sent_later

ROOT = Path(__file__).parents[3]
JAVASCRIPT = ROOT / "tests" / "javascript"


def deno(*arguments: str, cwd: Path = ROOT) -> str:
    """Run deno without the network, and return what it printed."""
    done = subprocess.run(
        [find_deno_bin(), *arguments],
        cwd=cwd,
        env={**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_unit_tests_of_the_scripts_pass() -> None:
    printed = deno("test", "--no-remote", "--no-check", "--config", str(JAVASCRIPT / "deno.json"), str(JAVASCRIPT))
    written = sum(path.read_text(encoding="utf-8").count("Deno.test(") for path in JAVASCRIPT.glob("*_test.js"))
    assert f"{written} passed | 0 failed" in printed


@pytest.mark.parametrize("view", [_VIEW, *_LATER.values(), "timeline.timelineView", "viewExplorer.viewExplorerView"])
def test_a_widgets_joined_script_is_a_module(view: str, tmp_path: Path) -> None:
    """Imported by a real engine: what is declared twice, or used at load and missing, is an error."""
    (tmp_path / "widget.mjs").write_text(script(view), encoding="utf-8")
    run = 'import("./widget.mjs").then((module) => console.log(typeof module.default.render))'
    (tmp_path / "run.mjs").write_text(run, encoding="utf-8")
    assert deno("run", "--no-remote", "--no-config", "run.mjs", cwd=tmp_path) == "function\n"


@pytest.mark.parametrize("view", _LATER.values())
def test_a_tabs_script_gets_what_it_lacks_from_the_explorers(view: str, tmp_path: Path) -> None:
    """Each name that a tab's script uses is in it or in what the explorer's script gives."""
    explorer = script(_VIEW, *_LATER.values())
    (tmp_path / "given.mjs").write_text(f"{explorer}\nexport {{ $given }};\n", encoding="utf-8")
    (tmp_path / "tab.mjs").write_text(later_script(view, _VIEW), encoding="utf-8")
    lines = [
        'import { $given } from "./given.mjs";',
        'import tab from "./tab.mjs";',
        "console.log(typeof tab($given), JSON.stringify(Object.keys($given).filter((name) => !$given[name])));",
    ]
    (tmp_path / "run.mjs").write_text("\n".join(lines), encoding="utf-8")
    assert deno("run", "--no-remote", "--no-config", "run.mjs", cwd=tmp_path) == "function []\n"
    wanted = re.match(r"export default\(\{(.*?)\}\)", later_script(view, _VIEW))
    given = re.search(r"const \$given=\{(.*?)\};", explorer)
    assert wanted and given and set(wanted[1].split(",")) <= set(given[1].split(","))


def test_a_saved_pages_script_is_one(tmp_path: Path) -> None:
    """It has neither imports nor exports, as a page opened from disk cannot load modules."""
    code = bare_script("saved.savedPage")
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE)
    called = f"const document={{getElementById(id){{throw new Error(id)}}}};{code}"
    check = f"try{{new Function({json.dumps(called)})()}}catch(error){{console.log(error.message)}}"
    (tmp_path / "run.mjs").write_text(check, encoding="utf-8")  # an argument may not be that long
    assert deno("run", "--no-config", "run.mjs", cwd=tmp_path) == "ice-data\n"


def test_names_at_the_top_of_scripts_are_one_modules_alone() -> None:
    """`_bundle` puts modules into one scope; in it a name that two have would be an error, or the wrong one's."""
    top = re.compile(r"^(?:export )?(?:(?:async )?function\*?|const|let|class) (\[[^\]]*\]|[\w$]+)", re.MULTILINE)
    owners: dict[str, list[str]] = {}
    for path in files("iceexplore.widgets").joinpath("static").iterdir():
        if path.name.endswith(".js"):
            for found in top.findall(path.read_text(encoding="utf-8")):
                for name in re.findall(r"[\w$]+", found):
                    owners.setdefault(name, []).append(path.name)
    assert len(owners) > 100
    assert {name: modules for name, modules in owners.items() if len(modules) > 1} == {}


def test_what_the_browser_receives_is_small() -> None:
    """The explorer with all its tabs, as sent: what counts is this, not the length of the source."""
    parts = [LOADER, Explorer.view_script, *(sent_later(view, _VIEW) for view in _LATER.values())]
    assert sum(map(len, parts)) < 80_000


def test_what_is_sent_is_what_was_compressed(tmp_path: Path) -> None:
    """As a browser's engine decompresses it; the bytes may start anywhere in a message's buffer."""
    sent = list(gzip.compress("export default { render: ({ more }) => ['ü \u2028 <!-- \\\\ `$', more] };".encode()))
    given = f"const buffer = new Uint8Array([0, 0, 0, ...{sent}]).buffer;\n"
    (tmp_path / "loader.mjs").write_text(LOADER, encoding="utf-8")
    run = f'import loader from "./loader.mjs";\n{given}'
    run += "const model = { get: (name) => (name === 'script' ? new DataView(buffer, 3) : null) };\n"
    run += "for (const more of [1, 2]) console.log(...(await loader.render({ model, more })));"
    (tmp_path / "run.mjs").write_text(run, encoding="utf-8")
    printed = deno("run", "--no-remote", "--no-config", "run.mjs", cwd=tmp_path)
    assert printed == "ü \u2028 <!-- \\ `$ 1\nü \u2028 <!-- \\ `$ 2\n"
    assert gzip.decompress(Explorer.view_script).decode() == script(_VIEW, *_LATER.values())
    explorer = (ROOT / "iceexplore" / "widgets" / "static" / "explorer.js").as_uri()
    later = f"import {{ unpackScript }} from {json.dumps(explorer)};\n"
    later += f"const buffer = new Uint8Array([0, 0, 0, ...{list(sent_later('rows.rowsView', _VIEW))}]).buffer;\n"
    later += "console.log(await unpackScript(new DataView(buffer, 3)));"
    (tmp_path / "later.mjs").write_text(later, encoding="utf-8")
    printed = deno("run", "--no-remote", "--no-config", "--allow-read", "later.mjs", cwd=tmp_path)
    assert printed.removesuffix("\n") == later_script("rows.rowsView", _VIEW)


def test_the_types_of_the_scripts_name_every_trait() -> None:
    """The traits that Python and the browser exchange are those that `types.d.ts` describes to the checker."""
    text = files("iceexplore.widgets").joinpath("static", "types.d.ts").read_text(encoding="utf-8")
    body = re.search(r"export interface Traits \{\n(.*?)\n\}\n", text, re.DOTALL)
    assert body
    described = set(re.findall(r"^  (\w+)\??:", body[1], re.MULTILINE)) - {"layout"}
    synced = set(Explorer.class_trait_names(sync=True)) - set(DOMWidget.class_trait_names(sync=True))
    assert described <= synced
    unread = {"left_out"}  # for notebooks: the legend has it as text
    assert {name for name in synced - described if not name.startswith("_")} == unread
