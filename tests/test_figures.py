"""The figures of the V4 proposal: what the proposal's text says of each, found in what was simulated."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from copy import copy

import pyarrow as pa
import pytest
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore.deletes import encode_deletion_vector
from iceexplore.render import TableDiagram, place, route_crossings

NAMES = list(ix.figures())

#: Rows of each root and manifest as the proposal's text and diagram sources have them. Names of manifests and vectors
#: are ours where the proposal calls them DM1 or DVM1.
EXPECTED: dict[str, dict[str, str]] = {
    "append-root": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, D4 ADDED",
        "Root Manifest C": "M1 EXISTING, D4 EXISTING, D5 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
    },
    "append-leaf": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, M2 ADDED",
        "Data Manifest M2": "D4 ADDED, D5 ADDED, D6 ADDED",
    },
    "remove-root": {"Root Manifest A": "D1 ADDED, D2 ADDED", "Root Manifest B": "D1 DELETED, D2 EXISTING"},
    "remove-leaf": {"Root Manifest B": "M1 EXISTING, DV1 ADDED", "Manifest DV1": "1"},
    "overwrite-root": {"Root Manifest B": "D1 DELETED, D2 ADDED", "Root Manifest C": "D2 DELETED, D3 ADDED"},
    "overwrite-leaf": {"Root Manifest B": "M1 EXISTING, DV1 ADDED, D4 ADDED", "Manifest DV1": "1"},
    "row-delta-root": {"Root Manifest B": "D1 EXISTING, DV1 ADDED, D2 ADDED", "Delete Vector DV1": "5, 12"},
    "row-delta-complex": {
        "Root Manifest B": "M1 EXISTING, M2 EXISTING, DV3 ADDED, M3 ADDED, M4 ADDED",
        "Manifest DV3": "0",
        "Delete Manifest M4": "DV4 ADDED",
        "Data Manifest M3": "D3 ADDED",
    },
    "compaction-append": {
        "Root Manifest A": "M1 EXISTING, M2 EXISTING, DV1 ADDED, DV2 ADDED",
        # The proposal's figure leaves out what was dropped; its text wants it as DELETED.
        "Root Manifest B": "M1 DELETED, M2 DELETED, DV1 DELETED, DV2 DELETED, M3 EXISTING, D7 ADDED",
        "Data Manifest M3": "D2 EXISTING, D3 EXISTING, D4 EXISTING, D6 EXISTING",
        "Manifest DV1": "0",
        "Manifest DV2": "1",
    },
    "discarded-several-dvs": {
        "Root Manifest C": "M1 EXISTING, DV1 EXISTING, DV2 ADDED",
        "Root Manifest D": "M1 EXISTING, DV3 EXISTING, D4 ADDED",
        "Manifest DV1": "1",
        "Manifest DV2": "2",
        "Manifest DV3": "1, 2",
    },
    "discarded-dv-in-delete-manifest": {
        "Root Manifest A": "M1 EXISTING, M2 EXISTING",
        "Root Manifest B": "M1 EXISTING, M2 EXISTING, M3 ADDED",
        "Root Manifest C": "M1 EXISTING, M4 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Delete Manifest M2": "DV1 ADDED",
        "Delete Manifest M3": "DV2 ADDED",
        "Delete Manifest M4": "DV3 EXISTING, DV4 ADDED",
    },
}


def rows(diagram: TableDiagram, title: str) -> set[str]:
    node = next(n for n in diagram.nodes if n.title == title)
    return {f"{name} {status}".strip() for name, status in node.rows}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_figure_shows_what_the_proposal_says(name: str) -> None:
    diagram = ix.figures()[name].tree().diagram
    for title, expected in EXPECTED[name].items():
        assert rows(diagram, title) == set(expected.split(", ")), title


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_keeps_the_drawing_rules(name: str) -> None:
    tree = ix.figures()[name].tree()
    diagram = tree.diagram
    assert route_crossings(place(diagram), diagram) == 0
    placed = place(diagram).nodes.values()
    for layer in diagram.layers:  # each layer on one level
        assert len({p.y for p in placed if p.node in layer}) == 1
    children = [n for n in diagram.nodes if n.kind in ("data-manifest", "delete-manifest", "manifest-dv")]
    assert len({n.layer for n in children}) <= 1
    for node in diagram.nodes:
        if node.kind == "manifest-dv":  # lists its ordinals, and applies to one leaf
            assert all(name.isdecimal() and not status for name, status in node.rows)
            assert sum(x.source == node.id for x in diagram.relations()) == 1
    ET.fromstring(tree.to_svg())
    assert tree.to_mermaid().count(" --> ") == len(diagram.children())
    source = tree.to_graphviz().source.encode()
    assert subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, check=True).stdout


def test_files_inside_leaves_have_no_node() -> None:
    diagram = ix.figures()["append-root"].tree().diagram
    assert sorted(n.title for n in diagram.nodes if n.kind == "data-file") == ["Data File D4", "Data File D5"]


def test_what_several_snapshots_share_is_one_node() -> None:
    diagram = ix.figures()["append-root"].tree().diagram
    manifest = next(n for n in diagram.nodes if n.kind == "data-manifest")
    assert sum(x.target == manifest.id for x in diagram.children()) == 3


def test_figures_list_themselves() -> None:
    found = ix.figures()
    assert "remove-leaf" in repr(found)
    assert "<table" in found._repr_html_()
    assert repr(found["remove-leaf"]).startswith("Removing a file from a leaf manifest")
    with pytest.raises(ix.OptionError, match="the figures are append-root"):
        found["nothing"]


def test_discarded_approaches_say_which_rules_they_bend() -> None:
    for figure in ix.figures().values():
        assert bool(figure.relaxed) == figure.name.startswith("discarded")
        if figure.relaxed:
            assert figure.relaxed[0] in figure.tree().diagram.caption


def test_figures_are_the_same_each_time() -> None:
    figure = ix.figures()["compaction-append"]
    assert figure.tree().to_svg() == figure.tree().to_svg()


@pytest.mark.parametrize("inline", [encode_deletion_vector(BitMap64([3, 7])), None], ids=["inline", "nowhere"])
def test_a_vector_may_be_inline_or_nowhere(inline: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ix.empty({"a": "long"}, format_version=4)
    s.append([{"location": "data/x.parquet", "record_count": 100, "file_size_in_bytes": 1000}])
    s.row_delta(deletes={s.inspect.files()["file_path"][0]: [0]})
    root = s.state.root()
    assert root is not None
    at = root.entries.schema.get_field_index("deletion_vector")
    vectors = pa.chunked_array(root.entries[at]).combine_chunks()
    place = {"offset": None, "size_in_bytes": None, "inline_content": inline}
    changed = pa.array([v and {**v, **place} for v in vectors.to_pylist()], vectors.type)
    made = copy(root)
    object.__setattr__(made, "entries", root.entries.set_column(at, root.entries.schema.field(at), changed))
    monkeypatch.setattr(type(s.state), "root", lambda *_: made)
    text = s.tree(style="proposal").to_text()
    assert ("    3\n    7" in text) if inline else ("cannot be read" in text)
    assert bool(s.problems) == (inline is None)
