"""What tests share: where the real tables are, and what a machine must have for some tests.

Locally a test whose need is missing is skipped and says why. With ``CI=true`` it fails instead: only
tests of the corpus may be skipped there.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

CI = os.environ.get("CI") == "true"

# No test pulls the plug: what is written is there for every process, killed ones' files too.
os.fsync = lambda fd: None

# A test's Java lives for seconds or minutes: its second compiler and its collector's threads take more than they give.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

hypothesis.settings.register_profile("short", max_examples=30, deadline=None, derandomize=CI, print_blob=True)
hypothesis.settings.register_profile("long", max_examples=5_000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("short")


def _missing(what: str) -> None:
    """Skip the test, or fail it where nothing may be missing."""
    if CI:
        pytest.fail(f"CI must have everything: {what}", pytrace=False)
    pytest.skip(what)


@cache
def java_version() -> int | None:
    """The major version of the Java that Spark would take; None without one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return None
    try:
        # JAVA_TOOL_OPTIONS makes Java print a line of its own first
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', answer)
    return int(match.group(1)) if match else None


@cache
def chromium_path() -> Path | None:
    """The Chromium of this machine (``ICEEXPLORE_CHROMIUM`` names another); None without one."""
    given = os.environ.get("ICEEXPLORE_CHROMIUM")
    for name in [given] if given else ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]:
        found = shutil.which(name)
        if found:
            return Path(found)
    return None


def corpus_path() -> Path | None:
    """The folder of real tables (``ICEEXPLORE_CORPUS``); None if unset."""
    given = os.environ.get("ICEEXPLORE_CORPUS")
    return Path(given) if given else None


def need_java() -> None:
    """Skip (or fail, on CI) without Java 17 and PySpark."""
    version = java_version()
    if version is None or version < 17:
        _missing(f"Spark needs Java 17 or later, and {'none' if version is None else f'Java {version}'} was found")
    if importlib.util.find_spec("pyspark") is None:
        _missing("PySpark is not installed (the extra 'spark')")


def need_chromium() -> Path:
    """Chromium's path; skip (or fail, on CI) without it."""
    path = chromium_path()
    if path is None:
        _missing("no Chromium was found (Debian: apt-get install chromium; or set ICEEXPLORE_CHROMIUM)")
    assert path is not None
    return path


def need_corpus() -> Path:
    """The folder of real tables; skip without it, also on CI."""
    path = corpus_path()
    if path is None:
        pytest.skip("ICEEXPLORE_CORPUS does not say where the real tables are")
    if not (path / "expected.json").is_file():
        pytest.fail(f"ICEEXPLORE_CORPUS says {path}, and no expected.json is there", pytrace=False)
    return path


#: Tests that share what is costly, a Spark session or a JupyterLab, stay in one process, and begin first.
TOGETHER = ("tests/spark/", "tests/browser/")
#: Then what is long and cannot be shared out: a notebook each.
FIRST = (*TOGETHER, "notebooks/")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process is left alone with it; `make test-long` has more tests."""
    if hypothesis.settings.get_current_profile_name() != "long":
        left = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: next((i for i, folder in enumerate(FIRST) if item.nodeid.startswith(folder)), 9))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage less often, and never the half a million objects of the collected tests: 0.4 s each."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # Arrow's small arrays are no garbage in circles


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n``: files are what is given out, as ``--dist loadfile`` does, and some folders whole."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.partition("::")[0])

    return Scheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Markers say what a test needs; it is looked for before any fixture."""
    if item.get_closest_marker("spark"):
        need_java()
    if item.get_closest_marker("browser"):
        need_chromium()
    if item.get_closest_marker("corpus"):
        need_corpus()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real tables that other engines wrote."""
    return need_corpus()


@pytest.fixture(scope="session")
def require_java() -> None:
    """For tests and fixtures that start Spark."""
    need_java()


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The Chromium of this machine."""
    return need_chromium()


@pytest.fixture(scope="session")
def require_dot() -> Path:
    """Graphviz's ``dot``."""
    found = shutil.which("dot")
    if found is None:
        _missing("Graphviz's dot was not found (Debian: apt-get install graphviz)")
    assert found is not None
    return Path(found)


@pytest.fixture(scope="session")
def trips() -> Path:
    """The folder of the sample table that ships in the package."""
    from iceexplore._samples import sample_path

    return sample_path("trips")
