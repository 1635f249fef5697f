"""The README's code runs as it is printed, line by line, in one folder: first what needs no Spark."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

import iceexplore as ix

ROOT = Path(__file__).resolve().parents[1]
#: What needs a session.
ON_SPARK = re.compile(r"\b(?:py)?spark|\bF\.|\bfiles\b\.|\brides\b")


def lines() -> list[str]:
    """The statements of all blocks, in their order."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def run(wanted: list[str], names: dict[str, Any]) -> None:
    """Run lines; what one of them raises says which."""
    for line in wanted:
        try:
            exec(compile(line, "README.md", "exec"), names)
        except Exception as e:
            raise AssertionError(f"{line}\n{type(e).__name__}: {e}") from e


def test_code_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # none of it needs the extra
    names: dict[str, Any] = {}
    plain = [line for line in lines() if not ON_SPARK.search(line.partition("#")[0])]
    assert len(plain) > 40
    try:
        run(plain, names)
        assert ix.lab("lab/trips").format_version == 4
    finally:
        ipywidgets.Widget.close_all()
        names["catalog"].close() if "catalog" in names else None
