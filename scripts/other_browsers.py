"""Try every widget in Firefox and WebKit, those that are installed (`make browsers`).

The tests run in Chromium. Here each widget is in a page of its own, with Python behind it, and is used with mouse and
keyboard; a saved page is opened from its file. Errors of our scripts, and violations of a policy, count as failures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import iceexplore as ix
from iceexplore.widgets import Explorer, TableWidget
from scripts.engines import ENGINES, Engine, missing
from scripts.widget_pictures import WIDGETS, tables
from tests.browser.bare import MODEL, PAGE, state_text

_WATCH = """
window.failures = [];
addEventListener("error", ({ message }) => failures.push(message));
addEventListener("unhandledrejection", ({ reason }) => failures.push(String(reason)));
document.addEventListener("securitypolicyviolation", ({ violatedDirective }) => failures.push(violatedDirective));
"""
_START = """
window.iceSave = async (body) => (await fetch("/save", { method: "POST", body })).text();
fetch("/state").then((answer) => answer.json()).then(%s).catch((error) => failures.push(String(error)));
"""
#: Where a card's middle is in the page.
_CARD = """(id) => {
  const canvas = document.querySelector(".ice-canvas");
  const { left, top } = canvas.getBoundingClientRect();
  const { x, y, height } = canvas.closest(".ice-map").where(id);
  return [left + x + 20, top + y + height / 2];
}"""
_MIDDLE = """(query) => {
  const found = document.querySelector(query);
  const middle = () => {
    const [{ left, top, width, height }] = found.getClientRects();
    return [left + Math.min(width / 2, 40), top + height / 2];
  };
  // outside the window, or under the head of what scrolls
  if (!found.contains(document.elementFromPoint(...middle()))) found.scrollIntoView({ block: "center" });
  return middle();
}"""


@contextmanager
def served(widget: TableWidget, theme: str) -> Iterator[str]:
    """The address of a page that shows a widget, with Python behind it."""

    def state() -> dict[str, Any]:
        hidden = ("_", "layout")
        return {name: value for name, value in widget.get_state().items() if not name.startswith(hidden)}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _answer(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("content-type", f"{kind}; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if self.path == "/state":
                return self._answer("application/json", state_text([widget._esm, state()]))
            if self.path != "/":
                return self._answer("text/plain", "")
            paper, light = ("#ffffff", "true") if theme == "light" else ("#111111", "false")
            page = PAGE % (widget._css, paper, light)
            script = f"<script>{_WATCH}{_START % MODEL}</script></body>"
            return self._answer("text/html", page.replace("</body>", script))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            for name, value in asked.items():
                setattr(widget, name, value)
            widget.settle(60)
            self._answer("application/json", state_text(state()))

    assert widget.settle(60)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        widget.close()


def until(engine: Engine, what: str, condition: str, seconds: float = 20) -> None:
    """Wait until an expression of the page is true, else it failed."""
    deadline = time.monotonic() + seconds
    while not engine.run(f"() => Boolean({condition})"):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def shown(engine: Engine, url: str) -> None:
    """Open a page, until its widget is there and has nothing to do."""
    engine.goto(url)
    until(engine, "the widget is drawn", "document.querySelector('.ice-widget[aria-busy=false]')")
    time.sleep(0.3)  # until the picture has its place, and for what is asked once it is seen
    until(engine, "Python has answered", "window.ice && !ice.waiting")


def click(engine: Engine, query: str) -> None:
    """Click what a selector finds, scrolled into view."""
    engine.mouse(tuple(engine.run(_MIDDLE, query)), "down", "up")


def tree(engine: Engine, widget: Any) -> None:
    """The picture and its rows: clicked, dragged, walked by keys."""
    root = next(i for i in widget.nodes if i.startswith("root:"))
    engine.mouse(tuple(engine.run(_CARD, root)), "down", "up")
    focused = "document.activeElement.dataset.id"
    until(engine, "a click selects", f"ice.state.selection.node === '{root}' && {focused} === '{root}'")
    x, y = engine.run(_CARD, root)
    engine.mouse((x, y + 90), "down", (x + 20, y + 80), (x + 40, y + 60), "up")
    moved = engine.run(_CARD, root)
    assert [round(moved[0] - x), round(moved[1] - y)] == [40, -30], "a drag moves the picture"
    engine.press("Home", "ArrowDown", "Enter")
    until(engine, "keys select", "ice.state.selection.node === 'metadata'")
    engine.press("End", "Home")
    assert engine.run(f"() => {focused}") == "table"


def grid(engine: Engine, widget: Any) -> None:
    """A table: sorted, walked, filtered; no room for what is not seen; its path selected by a click."""
    click(engine, ".ice-detail .ice-table thead .ice-sort")
    until(engine, "a click sorts", "document.querySelector('.ice-detail [aria-sort=ascending]')")
    click(engine, ".ice-detail .ice-table tbody td")  # not a link, which selects another node a moment later
    engine.press("ArrowDown", "ArrowRight")
    where = "document.activeElement.closest('tr').ariaRowIndex + getComputedStyle(document.activeElement).outlineStyle"
    until(engine, "the focus walks, and is seen", f"{where} === '3solid'")
    assert engine.run("() => document.querySelector('.ice-detail .ice-widths').offsetHeight") == 0
    click(engine, ".ice-path > span")
    path = "document.querySelector('.ice-path > span').textContent"
    until(engine, "a click selects a path", f"String(getSelection()) === {path}")
    click(engine, ".ice-detail .ice-input[type=search]")
    engine.press(*"avro", "Enter")
    until(engine, "what is typed filters", "document.querySelector('.ice-detail .ice-chip')")


def history(engine: Engine, widget: Any) -> None:
    """The timeline by keys."""
    engine.run("() => document.querySelector('.ice-axis').focus()")
    engine.press("Home")
    until(engine, "Home travels", f"ice.state.selection.snapshot === '{widget.snapshots[0]['id']}'")
    engine.press("ArrowRight")
    until(engine, "an arrow travels", f"ice.state.selection.snapshot === '{widget.snapshots[1]['id']}'")


def parts(engine: Engine, widget: Any) -> None:
    """Each of the explorer's tabs."""
    for part in ("scan", "commit", "problems", "vectors", "tree"):
        name = engine.run("(part) => document.querySelector(`.ice-part[data-part=${part}]`) && part", part)
        if name is None:
            continue
        click(engine, f".ice-part[data-part={part}]")
        until(engine, f"the tab {part}", f"ice.state.tab === '{part}' && !ice.waiting && !ice.state.busy")


def saved(engine: Engine, folder: Path) -> None:
    """A saved page, from its file: its script and its policy."""
    made = ix.sample("trips").explore().save_html(folder / "trips.html")
    engine.goto(made.path.as_uri())
    until(engine, "the page is drawn", "document.querySelector('.ice-timeline')")
    click(engine, ".ice-detail .ice-table thead .ice-sort")
    until(engine, "a click sorts", "document.querySelector('.ice-detail [aria-sort=ascending]')")
    click(engine, "[aria-label='Earlier snapshot']")
    until(engine, "a click travels", "document.querySelector('.ice-count').textContent === '11/12'")


def tried(name: str, engine: Engine, pictures: Path | None) -> list[str]:
    """What failed of everything, in sentences; each is printed as it is done."""
    failed = []

    def attempt(what: str, run: Callable[[], None]) -> None:
        try:
            run()
            failures = engine.run("() => window.failures ?? []")
            assert failures == [], failures
        except (AssertionError, RuntimeError) as error:
            failed.append(f"{name}: {what}: {error}")
            print(failed[-1], flush=True)
        else:
            print(f"{name}: {what}: well", flush=True)

    def drawn(widget: TableWidget, theme: str, file: str) -> None:
        with served(widget, theme) as url:
            shown(engine, url)
            if pictures is not None:
                (pictures / f"{name}-{file}.png").write_bytes(engine.shot())

    with tempfile.TemporaryDirectory(prefix="warehouse-") as folder:
        whole, damaged = tables(Path(folder))
        for widget, (title, make) in WIDGETS.items():
            for theme, path in (("light", whole), ("dark", whole), ("light", damaged)):
                file = f"{widget}-{'error' if path == damaged else theme}"
                attempt(f"{title} ({file})", lambda m=make, p=path, t=theme, f=file: drawn(m(ix.open(p)), t, f))  # type: ignore[misc]
        for use in (tree, grid, history, parts):
            explorer = Explorer(ix.open(whole))
            with served(explorer, "light") as url:
                shown(engine, url)
                attempt(str(use.__doc__).rstrip(".").partition(":")[0], lambda: use(engine, explorer))  # noqa: B023
        attempt("A saved page", lambda: saved(engine, Path(folder)))
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=list(ENGINES), help="firefox, webkit; default: both")
    parser.add_argument("--pictures", type=Path, help="folder that gets a picture of each widget")
    options = parser.parse_args(arguments)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    for name in options.engines:
        lacking = missing(ENGINES[name])
        if lacking:
            failed.append(f"{name}: not here: {', '.join(lacking)} (Debian: firefox-esr, webkit2gtk-driver, xvfb)")
            print(failed[-1])
            continue
        engine = ENGINES[name]()
        try:
            failed += tried(name, engine, options.pictures)
        finally:
            engine.close()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
