"""A real JupyterLab in a real Chromium: for the browser tests and for the README's pictures."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]

Theme = Literal["light", "dark"]

CHROMIUM_ARGUMENTS = (
    "--no-sandbox",  # root in a container has no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

_SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # every output is in the page, whether one scrolls there or not
    "notebook-extension/tracker": {"windowingMode": "none"},
}

#: What JupyterLab itself says on the console, whatever the notebook does.
_LAB_NOISE = ("favicon", "/api/contents/.jupyter", "ResizeObserver loop")


#: ms. To ask in every frame, as Playwright does, takes the core on which the kernel works.
_POLLING = 100

_OPENED = "window.jupyterapp?.shell?.currentWidget?.content?.model?.cells"
_IDLE = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"

# The tracebacks of the cells that raised (JupyterLab draws them like any stderr: ask the model).
_RAISED = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
  .flatMap(cell => cell.cell_type === "code" ? cell.getOutputs() : [])
  .filter(output => output.output_type === "error")
  .map(output => output.traceback.join("\\n"))"""

# Every cell with source has run, or one raised (then JupyterLab runs none of the rest).
_DONE = f"""() => ({_RAISED})().length > 0 || (
  window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === "idle"
  && window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === "code" && cell.model.sharedModel.source.trim())
    .every(cell => cell.model.executionCount !== null && cell.model.executionState !== "running")
)"""

# Text colour and background, each with the opacity and colours of its ancestors painted in.
_CONTRAST = """element => {
  const parse = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
  const chain = [];
  for (let node = element; node; node = node.parentElement) chain.unshift(getComputedStyle(node));
  let background = [255, 255, 255];
  let opacity = 1;
  for (const style of chain) {
    background = over(parse(style.backgroundColor), background);
    opacity *= Number(style.opacity);
  }
  const [r, g, b, a] = parse(getComputedStyle(element).color);
  const text = over([r, g, b, a * opacity], background);
  const luminance = colour => {
    const [x, y, z] = colour.map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const [low, high] = [luminance(text), luminance(background)].sort((p, q) => p - q);
  return (high + 0.05) / (low + 0.05);
}"""


class LabServer:
    """A JupyterLab of its own: its folder, settings, kernels and port are used by nothing else."""

    def __init__(self, folder: Path, python_path: Path = ROOT) -> None:
        self.root = folder / "notebooks"
        self._python_path = python_path
        self.token = secrets.token_hex(16)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self, seconds: float = 120) -> None:
        """Start it, and wait until it answers."""
        self.root.mkdir(parents=True)
        for name, values in _SETTINGS.items():
            path = self._folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        environment = {
            **os.environ,
            "HOME": str(self._folder),
            "IPYTHONDIR": str(self._folder / "ipython"),
            "JUPYTERLAB_SETTINGS_DIR": str(self._folder / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self._folder / "workspaces"),
            "JUPYTER_CONFIG_DIR": str(self._folder / "config"),
            "JUPYTER_DATA_DIR": str(self._folder / "data"),
            "JUPYTER_PLATFORM_DIRS": "1",
            "JUPYTER_RUNTIME_DIR": str(self._folder / "runtime"),
            "PYTHONPATH": str(self._python_path),
            "TZ": "UTC",
        }
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
            "--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ]  # fmt: skip
        with (self._folder / "lab.log").open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.root)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/api/status?token={self.token}", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        log_text = (self._folder / "lab.log").read_text(errors="replace")
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{log_text}")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, notebook: Path) -> str:
        """Copy a notebook into a folder of its own under the server's; return its path there."""
        folder = secrets.token_hex(4)
        (self.root / folder).mkdir()
        shutil.copyfile(notebook, self.root / folder / notebook.name)
        return f"{folder}/{notebook.name}"

    def stop_kernels(self) -> None:
        """End every kernel, so that one test's does not slow the next."""
        request = urllib.request.Request(f"{self.url}/api/sessions?token={self.token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            sessions = json.load(answer)
        for session in sessions:
            one = f"{self.url}/api/sessions/{session['id']}?token={self.token}"
            try:
                urllib.request.urlopen(urllib.request.Request(one, method="DELETE"), timeout=30).close()
            except urllib.error.HTTPError as error:
                error.close()

    def stop(self) -> None:
        """End the server and its kernels."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class NotebookPage:
    """One notebook in one JupyterLab tab, and all that the tab asked for and complained of."""

    def __init__(self, lab: LabServer, context: Any, theme: Theme) -> None:
        self._lab = lab
        self._theme: Theme = theme
        self.page: Any = context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("pageerror", lambda error: self.errors.append(f"{error.message}\n{error.stack or ''}"))
        self.page.on("console", self._on_console)

    def _on_console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def open(self, notebook: Path, *, single: bool = True) -> None:
        """Open a copy of a notebook in a fresh workspace and wait for its kernel."""
        name = self._lab.add(notebook)
        # each workspace is new, so that no tab of an earlier test comes back
        workspace = f"w{secrets.token_hex(6)}"
        self.page.goto(f"{self._lab.url}/lab/workspaces/{workspace}/tree/{name}?reset&token={self._lab.token}")
        self.page.wait_for_function(_OPENED, timeout=120_000, polling=_POLLING)
        if single:
            self.page.evaluate("window.jupyterapp.commands.execute('application:set-mode', {mode: 'single-document'})")
            self.page.evaluate("window.jupyterapp.shell.collapseLeft(); window.jupyterapp.shell.collapseRight()")
        self.theme(self._theme)  # the server remembers another tab's
        self.page.wait_for_function(_IDLE, timeout=120_000, polling=_POLLING)

    def run_all(self, seconds: float = 240) -> None:
        """Run every cell; a cell that raises fails here, by its traceback."""
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")  # not its end
        self.page.wait_for_function(_DONE, timeout=seconds * 1000, polling=_POLLING)
        raised = self.page.evaluate(f"({_RAISED})()")
        if raised:
            raise AssertionError("a cell failed:\n" + "\n".join(raised))

    def theme(self, theme: Theme) -> None:
        """Switch JupyterLab to its light or dark theme."""
        name = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate(f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{name}'}})")
        light = "true" if theme == "light" else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def scroll_to_top(self) -> None:
        """Show the first cell, with no cell selected that would draw its toolbar over a picture."""
        self.page.evaluate(
            "() => { const notebook = window.jupyterapp.shell.currentWidget.content;"
            " notebook.activeCellIndex = 0; notebook.scrollToItem(0, 'start'); }"
        )
        self.page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
        self.page.wait_for_timeout(500)

    def output(self, source: str) -> Any:
        """The locator of the output area under the one cell whose source contains ``source``."""
        found = self.page.locator(".jp-Notebook .jp-CodeCell").filter(
            has=self.page.locator(".jp-InputArea-editor", has_text=source)
        )
        return found.first.locator(".jp-OutputArea").first

    def contrast(self, locator: Any) -> float:
        """The contrast of an element's text against what is painted behind it (WCAG 2.2, 1.4.3: 4.5 or more)."""
        return float(locator.evaluate(_CONTRAST))

    def foreign_hosts(self) -> set[str]:
        """The hosts that the page asked for and that are not its own server."""
        own = f"127.0.0.1:{self._lab.port}"
        asked = {urlsplit(url) for url in self.requests}
        return {url.netloc for url in asked if url.scheme not in ("data", "blob", "about") and url.netloc != own}

    def our_errors(self) -> list[str]:
        """The console's errors, less what JupyterLab says anyway."""
        return [error for error in self.errors if not any(noise in error for noise in _LAB_NOISE)]

    def assert_clean(self) -> None:
        """No other host was contacted, and nothing complained."""
        assert self.requests, "the page asked for nothing: it was never opened"
        assert self.foreign_hosts() == set()
        errors = self.our_errors()
        assert errors == [], errors


class Notebook7Page(NotebookPage):
    """The same in Notebook 7, which the same server has."""

    def open(self, notebook: Path, *, single: bool = True) -> None:
        """Open a copy of a notebook, and wait for its kernel."""
        self.page.goto(f"{self._lab.url}/notebooks/{self._lab.add(notebook)}?token={self._lab.token}")
        self.page.wait_for_function(_OPENED, timeout=120_000, polling=_POLLING)
        self.theme(self._theme)
        self.page.wait_for_function(_IDLE, timeout=120_000, polling=_POLLING)

    def our_errors(self) -> list[str]:
        """Less what Notebook 7 says of settings and commands that it lacks: a widget's script is from a blob."""
        return [e for e in super().our_errors() if "/notebook_core." not in e or "blob:" in e]


@contextmanager
def chromium_browser(executable: Path) -> Iterator[Any]:
    """Chromium, headless. Playwright's own event loop runs meanwhile: use it in no wider scope than needed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(executable), args=list(CHROMIUM_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def notebook_page(
    lab: LabServer,
    browser: Any,
    *,
    width: int = 1280,
    height: int = 900,
    theme: Theme = "light",
    scale: float = 1,
    kind: type[NotebookPage] = NotebookPage,
) -> Iterator[NotebookPage]:
    """A tab with its own context: no cookies, cache or storage of another. ``kind=Notebook7Page``: in Notebook 7."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=scale, locale="en-GB"
    )
    try:
        yield kind(lab, context, theme)
    finally:
        context.close()
        lab.stop_kernels()


def watched(page: Any) -> list[str]:
    """What would tell of a script that ran: a dialog."""
    seen: list[str] = []

    def dismiss(dialog: Any) -> None:
        seen.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return seen
