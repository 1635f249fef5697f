"""Firefox and WebKit, each driven by what it speaks itself: WebDriver BiDi, and WebDriver. No program is downloaded.

Debian: ``apt-get install firefox-esr webkit2gtk-driver xvfb``.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

#: A page has the focus without a window, and nobody is asked for anything.
_FIREFOX = {
    "focusmanager.testmode": True,
    "app.normandy.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}

Found = TypeVar("Found")

__all__ = ["ENGINES", "Engine", "Firefox", "WebKit", "missing"]

#: Where Debian has WebKitGTK's small browser; on the path it is nowhere.
_MINI_BROWSERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/libexec")
#: Keys that are no character, as WebDriver has them.
KEYS = {"Enter": "\ue007", "End": "\ue010", "Home": "\ue011", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


class Engine(ABC):
    """A browser with one page."""

    needs: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="engine-"))
        self._log = self._folder / "log.txt"

    def _start(self, command: list[str]) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    @abstractmethod
    def goto(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""

    @abstractmethod
    def run(self, function: str, *given: Any) -> Any:
        """Call a function of the page's, which may be asynchronous; its value, by way of JSON."""

    @abstractmethod
    def _act(self, actions: list[dict[str, Any]]) -> None: ...

    @abstractmethod
    def shot(self) -> bytes:
        """What is seen, as PNG."""

    def mouse(self, *steps: tuple[float, float] | str) -> None:
        """Move to places, ``"down"`` and ``"up"``."""
        made: list[dict[str, Any]] = []
        for step in steps:
            if isinstance(step, str):
                made.append({"type": f"pointer{step.capitalize()}", "button": 0})
            else:
                made.append({"type": "pointerMove", "x": round(step[0]), "y": round(step[1]), "duration": 20})
        self._act([{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": made}])

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        made = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._act([{"type": "key", "id": "keys", "actions": made}])

    def close(self) -> None:
        """End it, and what it started."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)  # what it started may still write there


def waited(look: Callable[[], Found | None], log: Path, seconds: float = 60) -> Found:
    """What is found at last, else an error with the log."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise RuntimeError(log.read_text(errors="replace"))
        time.sleep(0.1)
    return found


class Firefox(Engine):
    """Firefox without a window, by WebDriver BiDi."""

    needs = ("firefox-esr",)

    def __init__(self) -> None:
        from websocket import create_connection

        super().__init__()
        settings = "".join(f"user_pref({json.dumps(name)}, {json.dumps(on)});\n" for name, on in _FIREFOX.items())
        (self._folder / "user.js").write_text(settings)
        command = [self.needs[0], "--headless", "--no-remote", "--profile", str(self._folder)]
        self._start([*command, "--remote-debugging-port=0"])
        log = self._log
        address = waited(lambda: re.search(r"BiDi listening on (\S+)", log.read_text(errors="replace")), log)[1]
        self._line = create_connection(f"{address}/session", suppress_origin=True, timeout=120)
        self._asked = 0
        self._ask("session.new", capabilities={})
        self._page = self._ask("browsingContext.create", type="tab")["context"]
        self._ask("browsingContext.activate", context=self._page)
        self._ask("browsingContext.setViewport", context=self._page, viewport={"width": 1100, "height": 900})

    def _ask(self, method: str, **given: Any) -> Any:
        self._asked += 1
        self._line.send(json.dumps({"id": self._asked, "method": method, "params": given}))
        while True:
            answer = json.loads(self._line.recv())
            if answer.get("id") == self._asked:
                if answer["type"] == "error":
                    raise RuntimeError(answer["message"])
                return answer["result"]

    def goto(self, url: str) -> None:
        self._ask("browsingContext.navigate", context=self._page, url=url, wait="complete")

    def run(self, function: str, *given: Any) -> Any:
        code = f"async () => JSON.stringify(await ({function})(...{json.dumps(given)})) ?? 'null'"
        asked: dict[str, Any] = {"functionDeclaration": code, "awaitPromise": True, "target": {"context": self._page}}
        found = self._ask("script.callFunction", **asked)
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def _act(self, actions: list[dict[str, Any]]) -> None:
        self._ask("input.performActions", context=self._page, actions=actions)

    def shot(self) -> bytes:
        return base64.b64decode(self._ask("browsingContext.captureScreenshot", context=self._page)["data"])


class WebKit(Engine):
    """WebKitGTK, the engine of Safari, by WebDriver; in a screen of its own where there is none."""

    needs = ("WebKitWebDriver", "xvfb-run")

    def __init__(self) -> None:
        super().__init__()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._start(["xvfb-run", "-a", "-s", "-screen 0 1400x1200x24", "WebKitWebDriver", f"--port={port}"])
        found = (p for folder in _MINI_BROWSERS for p in Path(folder).glob("webkit2gtk-4.*/MiniBrowser"))
        options = {"binary": str(next(found)), "args": ["--automation"]}
        asked = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        waited(self._listens, self._log)
        self._url += f"/session/{self._ask('/session', asked)['sessionId']}"
        self._ask("/timeouts", {"script": 120_000})
        self._ask("/window/rect", {"width": 1100, "height": 940})

    def _listens(self) -> bool | None:
        try:
            return bool(self._ask("/status", None)["ready"])
        except OSError:
            return None

    def _ask(self, path: str, given: dict[str, Any] | None) -> Any:
        data = None if given is None else json.dumps(given).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self._url + path, data), timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from error

    def goto(self, url: str) -> None:
        self._ask("/url", {"url": url})

    def run(self, function: str, *given: Any) -> Any:
        code = (
            "const [text, done] = arguments;"
            f"(async () => JSON.stringify(await ({function})(...JSON.parse(text))) ?? 'null')()"
            ".then((found) => done([found]), (error) => done([null, String(error)]))"
        )
        found = self._ask("/execute/async", {"script": code, "args": [json.dumps(given)]})
        if found[0] is None:
            raise RuntimeError(found[1])
        return json.loads(found[0])

    def _act(self, actions: list[dict[str, Any]]) -> None:
        self._ask("/actions", {"actions": actions})

    def shot(self) -> bytes:
        return base64.b64decode(self._ask("/screenshot", None))


ENGINES: dict[str, type[Engine]] = {"firefox": Firefox, "webkit": WebKit}


def missing(engine: type[Engine]) -> list[str]:
    """The programs that an engine needs and that are not there."""
    return [name for name in engine.needs if shutil.which(name) is None]
