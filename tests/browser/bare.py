"""A widget in a page of its own, without a notebook: its script, its traits, and Python behind them, in milliseconds.

What the script saves is set on the real widget in this process, and what that changes goes back. Only what a notebook
adds (comms, kernels that end, several frontends) takes JupyterLab.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from tests.browser.harness import Theme

__all__ = ["MODEL", "PAGE", "BarePage", "bare_page", "state_text", "violations"]

PAGE = """<!doctype html><html lang="en"><head><title>widget</title><style>%s</style>
<style>body { margin: 0; padding: 12px; font: 13px/1.4 sans-serif; background: %s; } main { max-width: 1400px; }</style>
</head><body data-jp-theme-light="%s"><main><h1 style="position:absolute;left:-999px">widget</h1>
<div id="host"></div></main></body></html>"""

MODEL = """async ([source, state]) => {
  const heard = new Map();
  const changed = new Set();
  const sent = [];
  const tell = (name) => [...(heard.get(name) ?? [])].forEach((run) => run(window.ice.model, {}));
  // A notebook delivers bytes as a DataView.
  const view = ({ bytes }) => new DataView(Uint8Array.from(atob(bytes), (digit) => digit.charCodeAt(0)).buffer);
  const model = {
    get(name) {
      if (name === "script") return view(state.script);
      if (name !== "scripts") return state[name];
      return Object.fromEntries(Object.entries(state.scripts).map(([tab, script]) => [tab, view(script)]));
    },
    set(name, value) {
      state[name] = value;
      changed.add(name);
      tell("change:" + name);
    },
    on: (name, run) => heard.set(name, [...(heard.get(name) ?? []), run]),
    off: (name, run) => heard.set(name, (heard.get(name) ?? []).filter((one) => one !== run)),
    async save_changes() {
      const patch = Object.fromEntries([...changed].map((name) => [name, state[name]]));
      changed.clear();
      window.ice.waiting++;
      sent.push(patch);
      const answer = JSON.parse(await window.iceSave(JSON.stringify(patch)));
      sent.splice(sent.indexOf(patch), 1);
      // As in ipywidgets, an answer does not undo what was set since.
      const newer = Object.keys(Object.assign({}, ...sent)).concat([...changed]);
      window.ice.update(Object.fromEntries(Object.entries(answer).filter(([name]) => !newer.includes(name))));
      window.ice.waiting--;
    },
    send: (message) => window.ice.sent.push(message),
  };
  window.ice = {
    model,
    state,
    waiting: 0,
    sent: [],
    listeners: () => [...heard.values()].reduce((n, runs) => n + runs.length, 0),
    update(values) {
      const other = Object.keys(values).filter((name) => JSON.stringify(state[name]) !== JSON.stringify(values[name]));
      for (const name of other) state[name] = values[name];
      for (const name of other) tell("change:" + name);
    },
  };
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.ice.end = await module.default.render({ model, el: document.getElementById("host") });
}"""

# Counts what outlives a widget: observers that still observe, and listeners on what is not the widget's own.
_COUNT = """() => {
  window.iceOpen = { observers: 0, listeners: 0 };
  for (const name of ["MutationObserver", "ResizeObserver", "IntersectionObserver"]) {
    const Real = window[name];
    window[name] = class extends Real {
      observe(...args) { if (!this.iceOn) { this.iceOn = true; window.iceOpen.observers++; } super.observe(...args); }
      disconnect() { if (this.iceOn) { this.iceOn = false; window.iceOpen.observers--; } super.disconnect(); }
    };
  }
  for (const owner of [Document.prototype, Window.prototype, MediaQueryList.prototype]) {
    const [add, remove] = [EventTarget.prototype.addEventListener, EventTarget.prototype.removeEventListener];
    owner.addEventListener = function (...args) { window.iceOpen.listeners++; return add.apply(this, args); };
    owner.removeEventListener = function (...args) { window.iceOpen.listeners--; return remove.apply(this, args); };
  }
}"""

_AXE = """async () => {
  const runOnly = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await axe.run(document, { runOnly });
  const describe = ({ html, failureSummary }) => html.slice(0, 200) + " " + failureSummary;
  return violations.map(({ id, help, nodes }) => [id, help, nodes.slice(0, 5).map(describe)]);
}"""


def state_text(state: Any) -> str:
    """Return a widget's state as JSON for `MODEL`: bytes are an object with their base-64 digits."""
    return json.dumps(
        state, default=lambda value: {"bytes": b64encode(value).decode()} if isinstance(value, bytes) else str(value)
    )


class BarePage:
    """A page that shows one widget."""

    def __init__(self, page: Any, widget: Any) -> None:
        self.page = page
        self.widget = widget
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"{error.message}\n{error.stack or ''}"))
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))
        page.expose_function("iceSave", self._save)

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.widget.get_state().items() if not name.startswith("_")}

    def _save(self, patch: str) -> str:
        for name, value in json.loads(patch).items():
            setattr(self.widget, name, value)
        assert self.widget.settle(60)
        return self._changed()

    def _changed(self) -> str:
        state = self._state()
        state.pop("layout", None)
        return state_text(state)

    def open(self, theme: Theme = "light") -> None:
        """Draw the widget."""
        assert self.widget.settle(60)
        paper = "#ffffff" if theme == "light" else "#111111"
        self.page.emulate_media(color_scheme=theme)
        self.page.goto("about:blank")
        self.page.set_content(PAGE % (self.widget._css, paper, "true" if theme == "light" else "false"))
        self.page.wait_for_function("true")  # Playwright's own observers and listeners are not the widget's
        self.page.evaluate(_COUNT)
        self.page.evaluate(MODEL, [self.widget._esm, json.loads(self._changed())])
        self.idle()

    def idle(self) -> None:
        """Wait until Python has answered everything, and it is drawn."""
        self.page.wait_for_timeout(60)
        self.page.wait_for_function("window.ice.waiting === 0")
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def push(self) -> None:
        """Tell the page what Python has changed meanwhile."""
        assert self.widget.settle(60)
        self.page.evaluate("(values) => window.ice.update(values)", json.loads(self._changed()))
        self.idle()

    def press(self, *keys: str) -> None:
        """Press keys, and wait for what they do."""
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_timeout(200)
        self.idle()

    def violations(self) -> list[Any]:
        """What axe-core finds wrong."""
        return violations(self.page)

    def end(self) -> dict[str, int]:
        """Take the widget away; what is left of it."""
        self.page.evaluate("window.ice.end()")
        left: dict[str, int] = self.page.evaluate("({ ...window.iceOpen, model: window.ice.listeners() })")
        return left

    def assert_clean(self) -> None:
        """Nothing complained, nothing was asked for."""
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("about:", "blob:", "data:"))] == []


def violations(page: Any) -> list[Any]:
    """What axe-core finds wrong in a page: WCAG 2.2 A and AA, and its best practices."""
    if not page.evaluate("'axe' in window"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(_AXE)
    return found


@contextmanager
def bare_page(
    browser: Any, widget: Any, *, width: int = 1000, height: int = 900, theme: Theme = "light"
) -> Iterator[BarePage]:
    """A widget in a page of its own; at the end nothing may have complained."""
    context = browser.new_context(viewport={"width": width, "height": height}, locale="en-GB")
    try:
        bare = BarePage(context.new_page(), widget)
        bare.open(theme)
        yield bare
        bare.assert_clean()
    finally:
        context.close()
        widget.close()
