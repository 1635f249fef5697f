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


class LabServer:
    """A JupyterLab of its own: its folder, settings, kernels and port are used by nothing else."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notebooks"
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
            "PYTHONPATH": str(ROOT),
            "TZ": "UTC",
        }
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
            "--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None",
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
        """Copy a notebook into the server's folder under a name of its own; return that name."""
        name = f"{notebook.stem}-{secrets.token_hex(4)}.ipynb"
        shutil.copyfile(notebook, self.root / name)
        return name

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
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.content?.model?.cells", timeout=120_000)
        if single:
            self.page.evaluate("window.jupyterapp.commands.execute('application:set-mode', {mode: 'single-document'})")
            self.page.evaluate("window.jupyterapp.shell.collapseLeft()")
        self.theme(self._theme)  # the server remembers another tab's
        self.page.wait_for_function(
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", timeout=120_000
        )

    def run_all(self, seconds: float = 240) -> None:
        """Run every cell; a cell that raises fails here, by its traceback."""
        self.page.set_default_timeout(seconds * 1000)
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            "window.jupyterapp.shell.currentWidget.content.widgets"
            ".filter(cell => cell.model.type === 'code' && cell.model.sharedModel.source.trim())"
            ".every(cell => cell.model.executionCount !== null && cell.model.executionState !== 'running')"
            " && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
            " || document.querySelector('[data-mime-type=\"application/vnd.jupyter.error\"]')",
            timeout=seconds * 1000,
        )
        raised = self.page.locator("[data-mime-type='application/vnd.jupyter.error'], [data-mime-type*=stderr]")
        if raised.count():
            raise AssertionError("a cell failed:\n" + "\n".join(raised.all_inner_texts()))
        self.page.set_default_timeout(30_000)

    def theme(self, theme: Theme) -> None:
        """Switch JupyterLab to its light or dark theme."""
        name = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate(f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{name}'}})")
        light = "true" if theme == "light" else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def cell(self, number: int) -> Any:
        """The locator of the cell of that number, as Playwright counts them (from 0)."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def output(self, source: str) -> Any:
        """The locator of the output area under the one cell whose source contains ``source``."""
        found = self.page.locator(".jp-Notebook .jp-CodeCell").filter(
            has=self.page.locator(".jp-InputArea-editor", has_text=source)
        )
        return found.first.locator(".jp-OutputArea").first

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
        assert self.our_errors() == []


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
    lab: LabServer, browser: Any, *, width: int = 1280, height: int = 900, theme: Theme = "light", scale: float = 1
) -> Iterator[NotebookPage]:
    """A tab with its own context: no cookies, cache or storage of another."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=scale, locale="en-GB"
    )
    try:
        yield NotebookPage(lab, context, theme)
    finally:
        context.close()
        lab.stop_kernels()
