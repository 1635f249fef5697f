"""The figures of the V4 proposal, each built by simulated commits and drawn by ``tree(style="proposal")``.

``ix.figures()`` lists them, ``ix.figures()["append-root"]`` shows one. Every figure is a small real table: its metadata
was written by the commit engine and read back. The two discarded approaches violate rules on purpose and name them. A
caption that says "Unlike the document" gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from iceexplore import commits, graph
from iceexplore._figure_charts import BitvectorChart
from iceexplore.commits import ViolatingLeaf
from iceexplore.deletes import new_dv_blob, write_puffin
from iceexplore.errors import OptionError
from iceexplore.manifests import ContentType, EntryBatch, Status
from iceexplore.render import TableDiagram, TableLink, TableNode, html_table
from iceexplore.simulation import Simulation, empty

__all__ = ["Figure", "Figures", "figures"]

_HOME = "/warehouse/db/events"
_ROWS = 100


@dataclass(frozen=True)
class Figure:
    """A figure of the V4 proposal.

    Attributes
    ----------
    title, section
        The subject, and the section of the proposal.
    look
        The detail to look at, in one sentence.
    relaxed
        The rules that it violates on purpose.
    differs
        Where the figure differs from the document's, and why; empty if it does not.
    """

    name: str
    title: str
    section: str
    look: str
    make: Callable[[], TableDiagram]
    relaxed: tuple[str, ...] = ()
    differs: str = ""

    def tree(self) -> graph.ProposalDiagram:
        """Return the drawing, with ``to_svg``, ``to_mermaid``, ``to_graphviz`` and ``to_text``."""
        violates = f" Violates: {', '.join(self.relaxed)}." if self.relaxed else ""
        differs = f" Unlike the document: {self.differs}" if self.differs else ""
        caption = self.look + violates + differs
        return graph.ProposalDiagram(lambda: replace(self.make(), title=self.title, caption=caption))

    def __repr__(self) -> str:
        return self.tree().to_text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.tree()._repr_mimebundle_(include, exclude)


class Figures(Mapping[str, Figure | BitvectorChart]):
    """The figures and charts by name, displayed as a list."""

    def __init__(self, items: tuple[Figure | BitvectorChart, ...]) -> None:
        self._items = {f.name: f for f in items}

    def __getitem__(self, name: str) -> Figure | BitvectorChart:
        if name not in self._items:
            raise OptionError(f"no figure {name!r}; the figures are {', '.join(self._items)}")
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        width = max(map(len, self._items))
        return "\n".join(f"{f.name.ljust(width)}  {f.title}: {f.look}" for f in self._items.values())

    def _repr_html_(self) -> str:
        rows = [[f.name, f.title, f.look, ", ".join(f.relaxed), f.differs] for f in self._items.values()]
        return str(html_table(["figure", "title", "what to look at", "violates", "unlike the document"], rows))


def figures() -> Figures:
    """Return the figures of the V4 proposal, the charts of its appendix, and a figure of today's table structure.

    The proposal's sections are "Examples", "Discarded Approaches", "Diagram Source" and "Appendix".
    """
    return _FIGURES


# Helpers of all figures -----------------------------------------------------------------------------------------------


def _table(format_version: int = 4, **layout: Any) -> Simulation:
    schema = {"id": "long", "name": "string"}
    return empty(schema, format_version=format_version, location=_HOME, seed="figures", **layout)


def _file(name: str) -> str:
    return f"{_HOME}/data/{name}.parquet"


def _files(*names: str) -> list[dict[str, Any]]:
    return [{"location": _file(n), "record_count": _ROWS, "file_size_in_bytes": 4096} for n in names]


def _drawn(s: Simulation, *, last: int | None = None, names: Mapping[str, str] | None = None) -> TableDiagram:
    """Return a diagram of the last snapshots of a simulation, with data files under their short names."""
    known = {_file(f"D{i}"): f"D{i}" for i in range(1, 20)}
    snapshots = list(s.state.metadata.snapshots)
    return graph.seed_diagram(s.state, snapshots[-last:] if last else snapshots, names={**known, **(names or {})})


def _with_leaf(*names: str, **layout: Any) -> Simulation:
    """Return a table whose first commit wrote these files into a leaf; later commits add files to the root."""
    s = _table(flush_data_files=0, **layout)
    s.append(_files(*names))
    s.set_layout(flush_data_files=100)
    return s


def _carry_over(s: Simulation) -> None:
    """Commit the current root again, with all its entries EXISTING, as the first snapshot of a figure."""
    _commit_rows(s, (), {}, "replace")


def _without_file_nodes(diagram: TableDiagram) -> TableDiagram:
    """Return a diagram without nodes of data files; the links of vectors to them lead to the root of the same group."""
    dropped = {node.id: node.title.removeprefix("Data File ") for node in diagram.nodes if node.kind == "data-file"}
    roots = {node.group: node.id for node in diagram.nodes if node.layer == 1}
    links = []
    for link in diagram.links:
        if link.target not in dropped:
            links.append(link)
        elif link.kind == "applies-to":
            root = roots[diagram.by_id[link.source].group]
            links.append(replace(link, target=root, label=f"applies to data file {dropped[link.target]}"))
    return replace(diagram, nodes=tuple(n for n in diagram.nodes if n.id not in dropped), links=tuple(links))


def _renamed(diagram: TableDiagram, names: Mapping[str, str]) -> TableDiagram:
    """Return a diagram with different short names in titles, rows and labels."""

    def text(old: str) -> str:
        return " ".join(names.get(word, word) for word in old.split(" "))

    nodes = [
        replace(node, title=text(node.title), rows=tuple((text(name), status) for name, status in node.rows))
        for node in diagram.nodes
    ]
    links = [replace(link, label=", ".join(map(text, link.label.split(", ")))) for link in diagram.links]
    return replace(diagram, nodes=tuple(nodes), links=tuple(links))


# The proposal's examples ----------------------------------------------------------------------------------------------


def _append_root() -> TableDiagram:
    s = _with_leaf("D1", "D2", "D3")
    s.append(_files("D4"))
    s.append(_files("D5"))
    return _drawn(s)


def _append_leaf() -> TableDiagram:
    s = _table(flush_data_files=0)
    s.append(_files("D1", "D2", "D3"))
    # Entries of a leaf stay there; a flush threshold of 0 makes each commit write a new leaf.
    s.append(_files("D4", "D5", "D6"))
    return _drawn(s)


def _remove_root() -> TableDiagram:
    s = _table()
    s.append(_files("D1", "D2"))
    _carry_over(s)
    s.delete_files([_file("D1")])
    return _without_file_nodes(_drawn(s, last=2))


def _remove_leaf() -> TableDiagram:
    s = _with_leaf("D1", "D2", "D3")
    s.delete_files([_file("D2")])
    return _drawn(s)


def _overwrite_root() -> TableDiagram:
    s = _table()
    s.append(_files("D1"))
    s.overwrite(_files("D2"), delete=[_file("D1")])
    s.overwrite(_files("D3"), delete=[_file("D2")])
    return _without_file_nodes(_drawn(s))


def _overwrite_leaf() -> TableDiagram:
    s = _with_leaf("D1", "D2", "D3")
    s.overwrite(_files("D4"), delete=[_file("D2")])
    return _without_file_nodes(_drawn(s))


def _row_delta_root() -> TableDiagram:
    s = _table()
    s.append(_files("D1"))
    s.row_delta(_files("D2"), deletes={_file("D1"): [5, 12]})
    return _without_file_nodes(_drawn(s))


def _row_delta_complex() -> TableDiagram:
    s = _table(flush_data_files=0, flush_delete_files=0)
    s.append(_files("D1", "D2"))
    s.row_delta(deletes={_file("D1"): [3], _file("D2"): [7]})
    s.row_delta(_files("D3"), deletes={_file("D1"): [20, 21]})
    return _renamed(_drawn(s, last=2), {"M1": "DM1", "M2": "DVM1", "M3": "DM2", "M4": "DVM2"})


def _compaction() -> TableDiagram:
    s = _table(flush_data_files=0)
    s.append(_files("D1", "D2", "D3"))
    s.append(_files("D4", "D5", "D6"))
    s.set_layout(flush_data_files=100)
    s.delete_files([_file("D1"), _file("D5")])
    _carry_over(s)
    s.set_layout(flush_data_files=100, compact_leaves=2)
    s.append(_files("D7"))
    return _drawn(s, last=2)


# Discarded approaches -------------------------------------------------------------------------------------------------


def _several_dvs() -> TableDiagram:
    s = _with_leaf("D1", "D2", "D3", dv_encoding="delta", relaxed=("one-manifest-dv",))
    s.delete_files([_file("D2")])
    s.delete_files([_file("D3")])
    s.append(_files("D4"))
    diagram = _without_file_nodes(_drawn(s))
    nodes = [
        replace(node, kind="deletion-vector", title=node.title.replace("Manifest", "Delete Vector"))
        if node.kind == "manifest-dv"
        else node
        for node in diagram.nodes
    ]
    return replace(diagram, nodes=tuple(nodes))


def _dv_in_delete_manifest() -> TableDiagram:
    s = _table(flush_data_files=0, flush_delete_files=0)
    s.append(_files("D1", "D2"))
    s.row_delta(deletes={_file("D2"): [3]})
    _carry_over(s)
    violated = _VIOLATED_BY_DELETE_MANIFESTS
    _commit_rows(s, (), {"M3": {"DV2": ([20, 21], Status.ADDED)}}, relaxed=violated)
    both = {"DV3": ([3, 20, 21], Status.EXISTING), "DV4": ([40], Status.ADDED)}
    _commit_rows(s, (ContentType.DELETE_MANIFEST,), {"M4": both}, relaxed=violated)
    names = {f"{_HOME}/metadata/{m}.parquet": m for m in ("M3", "M4")}
    return _drawn(s, last=3, names=names)


def _commit_rows(
    s: Simulation,
    without: tuple[ContentType, ...],
    manifests: Mapping[str, Mapping[str, tuple[list[int], Status]]],
    operation: Literal["replace", "overwrite"] = "overwrite",
    relaxed: tuple[str, ...] = (),
) -> None:
    """Commit the current root with all rows EXISTING and some kinds omitted, plus delete manifests of vectors of D2."""
    from pyroaring import BitMap64

    kept = commits.root_rows(s.state).with_columns(status=int(Status.EXISTING))
    kinds = kept.entries["content_type"].to_pylist()
    rows: list[EntryBatch | ViolatingLeaf] = [kept.take([i for i, kind in enumerate(kinds) if kind not in without])]
    files: dict[str, bytes] = {}
    now = s.snapshot
    assert now is not None
    old = {"snapshot_id": now.snapshot_id, "sequence_number": now.sequence_number}  # EXISTING entries do not inherit
    old["file_sequence_number"] = now.sequence_number
    for name, vectors in manifests.items():
        blobs = [new_dv_blob(BitMap64(positions), _file("D2")) for positions, _ in vectors.values()]
        location = f"{_HOME}/data/{name}.puffin"
        files[location], places = write_puffin(blobs)
        entries = [
            {
                "content_type": int(ContentType.POSITION_DELETE),
                "location": location,
                "file_format": "puffin",
                "status": int(status),
                "partition_spec_id": 0,
                "record_count": len(positions),
                "file_size_in_bytes": len(files[location]),
                "referenced_file": _file("D2"),
                "deletion_vector": {"offset": offset, "size_in_bytes": size},
                **(old if status == Status.EXISTING else {}),
            }
            for (positions, status), (offset, size) in zip(vectors.values(), places, strict=True)
        ]
        rows.append(ViolatingLeaf(f"{_HOME}/metadata/{name}.parquet", EntryBatch.of_rows(entries), "delete"))
    commits.commit_violating_rules(s._sandbox, rows, relaxed=relaxed, operation=operation, files=files)
    s.refresh()


# Then and now ---------------------------------------------------------------------------------------------------------


def _current_and_proposed() -> TableDiagram:
    """Return the document's sketch: what a real snapshot of each kind lists, without rows, in frames."""
    old = _table(3)
    old.append(_files("D1", "D2"))
    old.append(_files("D3"))
    old.row_delta(deletes={_file("D1"): [3]})
    new = _with_leaf("D1", "D2", flush_delete_files=0)
    new.row_delta(deletes={_file("D1"): [3]})
    new.set_layout(flush_data_files=100, flush_delete_files=100)
    new.row_delta(_files("D3"), deletes={_file("D2"): [4]})
    current = _sketch(_drawn(old, last=1), "current", "Manifest List", ("Current", "Snapshot A"), numbered=True)
    inside = ("Proposed", "Snapshot A")
    proposed = _sketch(_drawn(new, last=1), "proposed", "Root Manifest (Entry Point)", inside)
    frames = {"data-file": "Direct Entries", "deletion-vector": "Direct Entries"}
    parts = []
    for node in proposed.nodes:
        kind = node.id.split(":")[1]
        frame = () if kind == "root" else (frames.get(kind, "Manifest Entries"),)
        parts.append(replace(node, kind="entry-point" if kind == "root" else node.kind, frames=(*inside, *frame)))
    return TableDiagram("", "", (*current.nodes, *parts), (*current.links, *proposed.links))


def _sketch(
    diagram: TableDiagram, kind: str, entry: str, frames: tuple[str, ...], *, numbered: bool = False
) -> TableDiagram:
    """Return a root, what it lists, and the files of its leaves, each as a box without rows.

    Node ids are "kind of the sketch:kind of the node:number", where the root's kind is "root".
    """
    root = TableNode(f"{kind}:root:0", kind, entry, (), 0, kind, frames=frames)
    nodes, below, links = [root], [], []
    words = {"data-manifest": "Data Manifest", "delete-manifest": "Delete Manifest"}
    direct = {"data-file": "Data File 1", "deletion-vector": "Delete Vector 1"}
    counts: dict[str, int] = {}
    # As in the document, direct entries come before manifests.
    for node in sorted((n for n in diagram.nodes if n.layer == 2), key=lambda n: (*direct, *words).index(n.kind)):
        number = counts[node.kind] = counts.get(node.kind, 0) + 1
        name = direct.get(node.kind) or f"{words[node.kind]} {number if numbered else ''}".strip()
        at = f"{kind}:{node.kind}:{number}"
        nodes.append(TableNode(at, kind, name, (), 1, kind, node.tooltip, frames))
        links.append(TableLink(root.id, at))
        if node.kind in words:
            title = words[node.kind].replace("Manifest", "Files")
            below.append(TableNode(f"{at}:files", kind, title, (), 2, kind, frames=frames))
            links.append(TableLink(at, f"{at}:files"))
    return TableDiagram("", "", (*nodes, *below), tuple(links))


def _structure(s: Simulation, snapshot: str) -> TableDiagram:
    """Return the last snapshot, with the titles that the document gives the nodes of its two structures."""
    titles = {"Snapshot 1": snapshot, "Manifest List A": "Manifest List", "Root Manifest A": "Root Manifest"}
    titles["Data Manifest M1"] = "Manifest M1"
    diagram = _drawn(s, last=1)
    return replace(
        diagram, nodes=tuple(replace(node, title=titles.get(node.title, node.title)) for node in diagram.nodes)
    )


def _structure_v3() -> TableDiagram:
    s = _table(3)
    s.append(_files("D1", "D2", "D3"))
    return _structure(s, "Snapshot V3")


def _structure_v4() -> TableDiagram:
    s = _with_leaf("D1", "D2", "D3")
    s.overwrite(_files("D5"), delete=[_file("D2")])
    return _structure(s, "Snapshot V4")


def _table_structure() -> TableDiagram:
    """Return the diagram of Iceberg's first design document: catalog pointer, metadata files, snapshots, manifest lists, manifests, files."""
    s = _table(2)
    s.append(_files("D1", "D2"))
    s.append(_files("D3"))
    inner = _drawn(s)
    files = sorted((e for e in s.state.metadata.metadata_log), key=lambda e: e.timestamp_ms)
    locations = [*(e.metadata_file for e in files[1:]), s.metadata_location]
    pointer = ("db.events", f"→ metadata file s{len(locations) - 1}")
    nodes = [TableNode("catalog", "table", "Catalog", (pointer,), 0, "1")]
    links: list[TableLink] = []
    shown = [n for n in inner.nodes if n.layer == 0]
    for i, location in enumerate(locations):
        rows = tuple((f"snapshot s{k}", "") for k in range(i + 1))
        nodes.append(TableNode(f"metadata:{i}", "metadata", f"Metadata file s{i}", rows, 1, str(i + 1), location))
        links.append(TableLink(f"metadata:{i}", shown[i].id))
    links.insert(0, TableLink("catalog", f"metadata:{len(locations) - 1}"))
    for node in inner.nodes:
        title = f"Snapshot s{int(node.group) - 1}" if node.layer == 0 else node.title
        nodes.append(replace(node, layer=node.layer + 2, title=title))
    for node in inner.nodes:
        for name, status in node.rows if node.kind == "data-manifest" else ():
            nodes.append(TableNode(f"file:{name}", "data-file", f"Data File {name}", (), 5, node.group, status))
            links.append(TableLink(node.id, f"file:{name}"))
    return TableDiagram("", "", tuple(nodes), (*links, *inner.links))


_EXAMPLES = "Single File Commits, Examples"
_DISCARDED = "Single File Commits, Discarded Approaches"
#: The rules that the figure breaks: DV1 and DV2 are live at the same time; DV3 is new but EXISTING; M2 and M3 vanish,
#: and DV1 and DV2 with them.
_VIOLATED_BY_DELETE_MANIFESTS = ("added-is-change", "leaf-change-by-dv", "one-dv")

_APPENDIX = "Adaptive Metadata Tree, Appendix: Bitvector compression benchmarking"

_FIGURES = Figures(
    (
        Figure("append-root", "Appends to the root manifest", f"{_EXAMPLES}: Append Files", "Each append writes one file, a root with one more row; M1 is never rewritten.", _append_root),
        Figure("append-leaf", "Appends with new data manifests", f"{_EXAMPLES}: Append Files", "A large append writes a new leaf; the root then acts like a manifest list.", _append_leaf),
        Figure("remove-root", "Removing a file from the root manifest", f"{_EXAMPLES}: Remove Files", "D1 stays in the root as DELETED, so that the root shows the changes of its snapshot.", _remove_root),
        Figure("remove-leaf", "Removing a file from a leaf manifest", f"{_EXAMPLES}: Remove Files", "D2 has ordinal 1 in M1: a manifest DV removes it, and M1 is not rewritten.", _remove_leaf),
        Figure("overwrite-root", "Overwriting files in the root manifest", f"{_EXAMPLES}: Overwrite Files", "Replacing a file changes rows of the root and writes nothing else.", _overwrite_root),
        Figure("overwrite-leaf", "Overwriting files in a leaf manifest", f"{_EXAMPLES}: Overwrite Files", "D4 replaces D2: one new row and one manifest DV, both in the root.", _overwrite_leaf),
        Figure("row-delta-root", "A row delta in the root manifest", f"{_EXAMPLES}: Row Delta", "DV1 deletes rows 5 and 12 of D1; the updated rows are in D2.", _row_delta_root),
        Figure("row-delta-complex", "A row delta with delete manifests", f"{_EXAMPLES}: Row Delta", "The new DV4 of D1 replaces DV1, which the manifest DV3 removes from its delete manifest DVM1.", _row_delta_complex, (),
               "DM1 is EXISTING in A, because rows can be deleted only from files of an earlier commit."),
        Figure("compaction-append", "Manifest compaction during an append", f"{_EXAMPLES}: Manifest Compaction", "M3 merges the remaining entries of M1 and M2, all EXISTING; only D7 is ADDED.", _compaction, (),
               "B lists what compaction dropped as DELETED, because the document's text requires it, although its figure has no such rows."),
        Figure("discarded-several-dvs", "Discarded: several deletion vectors per leaf", _DISCARDED, "Each snapshot's changes are a separate ADDED vector beside the EXISTING one.", _several_dvs, ("one-manifest-dv",)),
        Figure("discarded-dv-in-delete-manifest", "Discarded: more deletes in another delete manifest", f"{_DISCARDED}: Modifying an existing Delete Vector", "DV2 adds to DV1 in a separate manifest; M4 then separates earlier deletes (DV3) from new ones (DV4).", _dv_in_delete_manifest, _VIOLATED_BY_DELETE_MANIFESTS),
        Figure("structure-v3", "The structure of a v3 snapshot", "Single File Commits, Diagram Source", "A manifest list names manifests only. It stores no status: ADDED follows from added_snapshot_id.", _structure_v3),
        Figure("structure-v4", "The structure of a V4 snapshot", "Single File Commits, Diagram Source", "A root manifest lists manifests, data files and deletion vectors.", _structure_v4, (),
               "M1 is EXISTING, because an earlier snapshot added it: a manifest DV on a leaf of the same commit would be against the rules."),
        Figure("current-and-proposed", "Current and proposed structure", "Single File Commits, Proposal", "Data and deletes may be listed in the root itself until there are enough of them for a leaf.", _current_and_proposed),
        BitvectorChart("appendix-bytes", "The size of bit vectors", _APPENDIX, "From 100,000 bits on, Zstandard over a bitset is the smallest at every density; of 1,000 bits, the sparsest vectors are smallest in Roaring."),
        BitvectorChart("appendix-bytes-per-position", "Bytes for each deleted position", _APPENDIX, "From 10,000 bits on, Roaring takes two bytes a position up to a density of 0.05; every other method gets cheaper with density.", per_position=True),
        Figure("table-structure", "The structure of a table", "Iceberg's first design document", "The catalog holds one pointer; each commit writes a new metadata file and swaps it.", _table_structure),
    )
)  # fmt: skip
