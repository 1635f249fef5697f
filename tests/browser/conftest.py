"""One JupyterLab for all browser tests; one Chromium per module; one tab and kernel per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import ROOT, LabServer, NotebookPage, chromium_browser, notebook_page


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A JupyterLab of its own."""
    server = LabServer(tmp_path_factory.mktemp("lab"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")  # no wider: Playwright's event loop would be in the way of nbval's
def browser(chromium: Path) -> Iterator[Any]:
    """Debian's Chromium."""
    with chromium_browser(chromium) as started:
        yield started


@pytest.fixture
def notebook(lab: LabServer, browser: Any) -> Iterator[NotebookPage]:
    """A fresh tab; whatever the test did, no other host was contacted and nothing complained."""
    with notebook_page(lab, browser) as page:
        yield page
        page.assert_clean()


@pytest.fixture(scope="session")
def quickstart() -> Path:
    """The notebook that `make lab` opens."""
    return ROOT / "notebooks" / "01_quickstart.ipynb"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Return a tab for a saved page; fail if the page loads anything but its file, or logs a message."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    tab = context.new_page()
    asked: list[str] = []
    messages: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    yield tab
    assert {url.split(":")[0] for url in asked} <= {"file", "blob", "data"}
    assert messages == []
    context.close()
