"""The figures of the V4 proposal: what the proposal's text says of each, found in what was simulated."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from copy import copy

import pyarrow as pa
import pytest
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore._figure_charts import BitvectorChart
from iceexplore._figures import Figure
from iceexplore.deletes import encode_deletion_vector
from iceexplore.render import TableDiagram, place, route_crossings

CHARTS = [name for name, figure in ix.figures().items() if isinstance(figure, BitvectorChart)]
NAMES = [name for name in ix.figures() if name not in CHARTS]

#: Rows of each root and manifest as the document's text and diagram sources have them. Where a comment says so, the
#: figure differs, and its caption has the reason.
EXPECTED: dict[str, dict[str, str]] = {
    "append-root": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, D4 ADDED",
        "Root Manifest C": "M1 EXISTING, D4 EXISTING, D5 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Data File D4": "",
        "Data File D5": "",
    },
    "append-leaf": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, M2 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Data Manifest M2": "D4 ADDED, D5 ADDED, D6 ADDED",
    },
    "remove-root": {"Root Manifest A": "D1 EXISTING, D2 EXISTING", "Root Manifest B": "D1 DELETED, D2 EXISTING"},
    "remove-leaf": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, DV1 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Manifest DV1": "1",
    },
    "overwrite-root": {
        "Root Manifest A": "D1 ADDED",
        "Root Manifest B": "D1 DELETED, D2 ADDED",
        "Root Manifest C": "D2 DELETED, D3 ADDED",
    },
    "overwrite-leaf": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, DV1 ADDED, D4 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Manifest DV1": "1",
    },
    "row-delta-root": {
        "Root Manifest A": "D1 ADDED",
        "Root Manifest B": "D1 EXISTING, DV1 ADDED, D2 ADDED",
        "Delete Vector DV1": "5, 12",
    },
    "row-delta-complex": {
        "Root Manifest A": "DM1 EXISTING, DVM1 ADDED",  # the document: DM1 ADDED
        "Root Manifest B": "DM1 EXISTING, DVM1 EXISTING, DV3 ADDED, DVM2 ADDED, DM2 ADDED",
        "Data Manifest DM1": "D1 ADDED, D2 ADDED",
        "Delete Manifest DVM1": "DV1 ADDED, DV2 ADDED",
        "Manifest DV3": "0",
        "Delete Manifest DVM2": "DV4 ADDED",
        "Data Manifest DM2": "D3 ADDED",
    },
    "compaction-append": {
        "Root Manifest A": "M1 EXISTING, M2 EXISTING, DV1 EXISTING, DV2 EXISTING",
        # The document's figure leaves out what was dropped; its text wants it as DELETED.
        "Root Manifest B": "M1 DELETED, M2 DELETED, DV1 DELETED, DV2 DELETED, M3 EXISTING, D7 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Data Manifest M2": "D4 ADDED, D5 ADDED, D6 ADDED",
        "Data Manifest M3": "D2 EXISTING, D3 EXISTING, D4 EXISTING, D6 EXISTING",
        "Manifest DV1": "0",
        "Manifest DV2": "1",
        "Data File D7": "",
    },
    "discarded-several-dvs": {
        "Root Manifest A": "M1 ADDED",
        "Root Manifest B": "M1 EXISTING, DV1 ADDED",
        "Root Manifest C": "M1 EXISTING, DV1 EXISTING, DV2 ADDED",
        "Root Manifest D": "M1 EXISTING, DV3 EXISTING, D4 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Delete Vector DV1": "1",
        "Delete Vector DV2": "2",
        "Delete Vector DV3": "1, 2",
    },
    "discarded-dv-in-delete-manifest": {
        "Root Manifest A": "M1 EXISTING, M2 EXISTING",
        "Root Manifest B": "M1 EXISTING, M2 EXISTING, M3 ADDED",
        "Root Manifest C": "M1 EXISTING, M4 ADDED",
        "Data Manifest M1": "D1 ADDED, D2 ADDED",
        "Delete Manifest M2": "DV1 ADDED",
        "Delete Manifest M3": "DV2 ADDED",
        "Delete Manifest M4": "DV3 EXISTING, DV4 ADDED",
    },
    "structure-v3": {"Manifest List": "M1 ADDED", "Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED"},
    "structure-v4": {
        "Root Manifest": "M1 EXISTING, D5 ADDED, DV1 ADDED",  # the document: M1 ADDED
        "Manifest M1": "D1 ADDED, D2 ADDED, D3 ADDED",
        "Manifest DV1": "1",
        "Data File D5": "",
    },
}

#: Dotted edges as the document's sources have them: label by source and target.
APPLIES = {
    "remove-leaf": {("Manifest DV1", "Data Manifest M1"): "applies to M1"},
    "overwrite-leaf": {("Manifest DV1", "Data Manifest M1"): "applies to M1"},
    "row-delta-root": {("Delete Vector DV1", "Root Manifest B"): "applies to data file D1"},
    "row-delta-complex": {
        ("Delete Manifest DVM1", "Data Manifest DM1"): "DV1 applies to D1, DV2 applies to D2",
        ("Manifest DV3", "Delete Manifest DVM1"): "applies to DVM1",
        ("Delete Manifest DVM2", "Data Manifest DM1"): "DV4 applies to D1",
    },
    "compaction-append": {
        ("Manifest DV1", "Data Manifest M1"): "applies to M1",
        ("Manifest DV2", "Data Manifest M2"): "applies to M2",
    },
    "structure-v4": {("Manifest DV1", "Manifest M1"): "applies to M1"},
}

#: Figures that differ from the document's, whose captions say so.
DIFFERENT = {"row-delta-complex", "compaction-append", "structure-v4"}


def figure(name: str) -> Figure:
    found = ix.figures()[name]
    assert isinstance(found, Figure)
    return found


def rows(diagram: TableDiagram, title: str) -> set[str]:
    node = next(n for n in diagram.nodes if n.title == title)
    return {f"{name} {status}".strip() for name, status in node.rows}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_figure_shows_what_the_proposal_says(name: str) -> None:
    diagram = figure(name).tree().diagram
    for title, expected in EXPECTED[name].items():
        assert rows(diagram, title) == set(filter(None, expected.split(", "))), title
    # Nothing else is drawn but the snapshots.
    assert {node.title for node in diagram.nodes if node.kind != "snapshot"} == set(EXPECTED[name])


@pytest.mark.parametrize("name", APPLIES)
def test_dotted_edges_are_labelled_as_in_the_proposal(name: str) -> None:
    diagram = figure(name).tree().diagram
    titles = {node.id: node.title for node in diagram.nodes}
    found = {(titles[link.source], titles[link.target]): link.label for link in diagram.relations()}
    assert found == APPLIES[name]
    text = "".join(ET.fromstring(figure(name).tree().to_svg()).itertext())
    for label in ", ".join(found.values()).split(", "):
        assert label in text  # drawn, also on short edges


def test_a_caption_says_where_and_why_a_figure_differs() -> None:
    assert {name for name in NAMES if figure(name).differs} == DIFFERENT
    for name in DIFFERENT:
        shown = figure(name).tree()
        assert f"Unlike the document: {figure(name).differs}" in shown.diagram.caption
        words = " ".join(node.text or "" for node in ET.fromstring(shown.to_svg()).iter() if node.get("class"))
        assert figure(name).differs in words  # whole, over several lines


def test_the_sketch_has_the_documents_boxes_frames_and_colours() -> None:
    diagram = figure("current-and-proposed").tree().diagram
    frames = diagram.frames()
    found = {frame: {node.title for node in nodes if node.frames == frame} for frame, nodes in frames.items()}
    assert found == {
        ("Current",): set(),
        ("Proposed",): set(),
        ("Current", "Snapshot A"): {
            *("Manifest List", "Data Manifest 1", "Data Manifest 2", "Delete Manifest 1"),
            *("Data Files", "Delete Files"),
        },
        ("Proposed", "Snapshot A"): {"Root Manifest (Entry Point)"},
        ("Proposed", "Snapshot A", "Direct Entries"): {"Data File 1", "Delete Vector 1"},
        ("Proposed", "Snapshot A", "Manifest Entries"): {
            *("Data Manifest", "Delete Manifest", "Data Files", "Delete Files")
        },
    }
    kinds = {node.frames[0] if node.layer else node.title: node.kind for node in diagram.nodes}
    assert kinds["Current"] == kinds["Manifest List"] == "current" and kinds["Proposed"] == "proposed"
    assert kinds["Root Manifest (Entry Point)"] == "entry-point"
    svg = figure("current-and-proposed").tree().to_svg("light")
    for colour in ("#ffebee", "#c62828", "#e8f5e8", "#1b5e20", "#e1f5fe", "#01579b"):  # the document's
        assert colour in svg
    mermaid = figure("current-and-proposed").tree().to_mermaid()
    for title in ("Current", "Snapshot A", "Direct Entries", "Manifest Entries"):
        assert f'["{title}"]' in mermaid
    placed = place(diagram)
    for box, (x, y, width, height) in placed.frames.items():  # each frame holds its boxes, and no others
        for p in placed.nodes.values():
            inside = x < p.x and p.x + p.width < x + width and y < p.y and p.bottom < y + height
            assert inside == (p.node.frames[: len(box)] == box), (box, p.node.title)
            apart = p.x + p.width <= x or x + width <= p.x or p.bottom <= y or y + height <= p.y
            assert inside or apart, (box, p.node.title)


@pytest.mark.parametrize("name", CHARTS)
def test_the_appendix_is_measured_again(name: str) -> None:
    """Means of five vectors against one of the document; 1,000 bits vary most (benchmarks/bitvectors.py)."""
    chart = ix.figures()[name]
    assert isinstance(chart, BitvectorChart)
    frame = chart.to_pandas()
    assert len(frame) == 64
    large = frame[frame["bits"] >= 10_000]
    assert (abs(large["measured"] / large["document"] - 1) < 0.06).all()
    assert (abs(frame["measured"] / frame["document"] - 1) < 0.2).all()
    document = frame.set_index(["method", "density", "bits"])["document"]
    bytes_or_each = {"appendix-bytes": 16_408, "appendix-bytes-per-position": 16_408 / 20_000}
    assert document["Roaring", 0.2, 100_000] == pytest.approx(bytes_or_each[name])
    texts = [bar.text for row in chart.chart().rows for bar in row.bars if bar]
    assert len(texts) == 64 and texts[0].endswith(("(57)", "(5.70)"))
    ET.fromstring(chart.to_svg())


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_keeps_the_drawing_rules(name: str) -> None:
    tree = figure(name).tree()
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
    diagram = figure("append-root").tree().diagram
    assert sorted(n.title for n in diagram.nodes if n.kind == "data-file") == ["Data File D4", "Data File D5"]


def test_what_several_snapshots_share_is_one_node() -> None:
    diagram = figure("append-root").tree().diagram
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
    for name in NAMES:
        shown = figure(name)
        assert bool(shown.relaxed) == name.startswith("discarded")
        if shown.relaxed:
            assert shown.relaxed[0] in shown.tree().diagram.caption


def test_figures_are_the_same_each_time() -> None:
    shown = figure("compaction-append")
    assert shown.tree().to_svg() == shown.tree().to_svg()


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
