"""The progress bar: for a person, on long work, and gone when it is done."""

from __future__ import annotations

import io
import sys
import threading
import types

import IPython
import IPython.display
import pytest

from iceexplore.storage import _progress, progress, report_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _run(steps: int) -> None:
    with progress(steps, "manifests") as step:
        for _ in range(steps):
            step()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "DELAY", 0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def test_a_terminal_sees_it_and_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    _run(100)
    assert "manifests" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")


def test_a_notebook_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = io.StringIO()
    monkeypatch.setattr(sys, "stderr", cell)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    _run(100)
    assert "manifests" in cell.getvalue()


def test_it_goes_from_a_cell_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to stderr there keeps a line of its own, on red."""
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            shown.append(data)

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        shown.append(data)
        return Handle()

    cell = io.StringIO()
    monkeypatch.setattr(sys, "stderr", cell)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setattr(IPython.display, "display", display)
    _run(100)
    assert "manifests" in shown[0]["text/plain"]
    assert shown[-1] == {}
    assert cell.getvalue() == ""


def test_a_log_file_a_thread_and_short_work_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    log, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stderr", log)
    _run(100)
    monkeypatch.setattr(sys, "stderr", terminal)
    thread = threading.Thread(target=_run, args=(100,))
    thread.start()
    thread.join()
    _run(_progress.MIN_FILES - 1)
    assert not log.getvalue()
    assert not terminal.getvalue()


def test_a_listener_hears_of_its_own_thread_s_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(_progress, "INTERVAL", 0)
    heard: list[tuple[int, int, str]] = []
    with report_progress(lambda *step: heard.append(step)):
        _run(20)
        _run(3)
        other = threading.Thread(target=_run, args=(20,))
        other.start()
        other.join()
    assert heard == [(done, 20, "manifests") for done in range(1, 21)], "few steps are not worth a word"
    assert terminal.getvalue() == "", "there is no bar besides"
    heard.clear()
    _run(20)
    assert not heard


def test_a_listener_is_not_called_for_each_of_many_steps() -> None:
    heard: list[int] = []
    with report_progress(lambda done, total, what: heard.append(done)):
        _run(10_000)
    assert len(heard) < 100
