"""Hostile names, paths, partitions, bounds, columns and filters only show, in every output of a plan's pictures."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.planning import ScanPlan
from iceexplore.render import escape
from tests.helpers.hostile import HOSTILE
from tests.helpers.tables.plan_table import filled
from tests.planning.report.picture_checks import ROOMY, SVG, faces, greyed, outputs

EVIL = '"]; <img src=x onerror=alert(1)> `x` $y$ \\N <b>'
NAMED = "`" + EVIL.replace("`", "``") + "`"
VALUES = {k: v for k, v in HOSTILE.items() if k not in ("surrogate", "long", "long-wide")}


@cache
def evil() -> ix.Simulation:
    """A file that is skipped and one that is read for each text: in its path, its partition and its bounds."""
    table = ix.empty({"p": "string", EVIL: "string"}, partition_by=["p"], format_version=2, seed=5)
    pairs = list(VALUES.values())
    for start in range(0, len(pairs), 2):  # two per manifest, so that skipped nodes are drawn one by one
        files = []
        for number, text in enumerate(pairs[start : start + 2], start):
            shared = {"record_count": 1, "file_size_in_bytes": 9, "partition": {"p": text}, "value_counts": {EVIL: 1}}
            low, high = {EVIL: text}, {EVIL: text + "~"}
            gone = {"location": f"data/made-up/{number}/{text}.parquet", "lower_bounds": low, "upper_bounds": high}
            kept = {"location": f"data/made-up/{number}-read/{text}.parquet", "lower_bounds": {EVIL: ""}}
            files += [shared | gone, shared | kept]
        table.append(files)
    return table


@cache
def evil_plan() -> ScanPlan:
    return evil().plan(f"{NAMED} = '\U0010fffd'")


def test_hostile_paths_partitions_bounds_and_columns_only_show() -> None:
    plan = evil_plan()
    assert len(plan) == len(VALUES) == len(plan.skipped)
    faces(plan)
    lines = plan.tree(max_nodes=ROOMY).to_text().split("\n")
    assert len(lines) == len(plan.tree(max_nodes=ROOMY).scene().nodes)
    assert sum(NAMED in line and "⊘" in line for line in lines) == len(VALUES)


def test_hostile_values_appear_in_the_evidence() -> None:
    shown = {n.lines[1] for n in greyed(evil_plan().tree(max_nodes=ROOMY), "data-file")}
    for text in ("<b>bold</b><img src=x onerror=alert(1)>", HOSTILE["mermaid-click"], HOSTILE["bidi"]):
        assert any(text in line for line in shown), text


@cache
def small_plan() -> ScanPlan:
    return filled("v2", appends=2).plan("id >= 15")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_names_and_filters_only_show(text: str) -> None:
    plan = small_plan()
    opened = replace(plan.state.opened, name=text)
    named = replace(plan, state=replace(plan.state, opened=opened), filter=replace(plan.filter, text=text))
    faces(named)
    if 0 < len(text) < 20 and text.strip():
        assert escape.visible(text) in named.tree().to_text() and escape.visible(text) in named.waterfall().to_text()


def test_dot_draws_what_is_hostile(require_dot: Path) -> None:
    source = outputs(evil_plan())["dot"]
    drawn = subprocess.run(
        [str(require_dot), "-Tsvg"], input=source.encode(), capture_output=True, timeout=60, check=False
    )
    assert drawn.returncode == 0, drawn.stderr
    root = ET.fromstring(drawn.stdout)
    assert not {e.tag.removeprefix(SVG) for e in root.iter()} & {"a", "script", "image", "foreignObject"}
    assert len([e for e in root.iter(f"{SVG}g") if e.get("class") == "node"]) == len(
        evil_plan().tree(max_nodes=ROOMY).scene().nodes
    )
