"""A V4 table is a table like any other: what every face of it shows, against a plain reading of the same files."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from tests.helpers.root_model import History
from tests.helpers.tables.root_table import BY_KIND_AND_BUCKET, RootLab, data_file, dv, equality, path
from tests.helpers.v4_oracle import entries_of, live_of, root_of

LAYOUTS: list[dict[str, Any]] = [
    {"dv_encoding": "removed"},
    {"dv_encoding": "replace", "inline_dv_bytes": 0},
    {"dv_encoding": "delta"},
    {"partition_storage": "source", "inline_dv_bytes": 0},
    {"partition_storage": "tuple", "affinity": "all"},
]


def _history(folder: Path, seed: int, commits: int = 4, **options: Any) -> RootLab:
    layout = {"flush_data_files": 4, "flush_delete_files": 3, "leaf_entries": 5, **options}
    lab = RootLab(folder, spec=BY_KIND_AND_BUCKET, options=layout)
    history = History(lab, Random(seed))
    rows = [data_file(history.name("D"), kind="ab"[i % 2], low=i) for i in range(9)]
    history.data.update({f"D{i + 1}": row for i, row in enumerate(rows)})
    lab.commit("append", rows)
    targets = ["D1", "D2", "D3", "D4"]
    history.dvs |= {target: history.name("V") for target in targets}
    history.equality |= {"Q1", "Q2"}
    vectors = [dv(history.dvs[d], d, kind=history.data[d]["kind"]) for d in targets]
    lab.commit("overwrite", [*vectors, equality("Q1"), equality("Q2", kind="b")])
    lab.commit("delete", remove_data=path("D2", "D5"))
    for gone in ("D2", "D5"):
        history.data.pop(gone)
        history.dvs.pop(gone, None)
    small, target = history.name("D"), "D1"
    history.data[small] = data_file(small, low=50)
    history.dvs[target] = history.name("V")
    vector = dv(history.dvs[target], target, kind=history.data[target]["kind"])
    lab.commit("overwrite", [history.data[small], vector], replace_dvs=path(target))
    for _ in range(commits):
        change = history.change()
        lab.box.commit(lambda writer, made=change: made)  # type: ignore[misc]
    return lab


@pytest.fixture(scope="module", params=range(len(LAYOUTS)), ids=lambda i: "-".join(map(str, LAYOUTS[i].values())))
def t(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ix.Table:
    lab = _history(tmp_path_factory.mktemp("v4") / "t", 11 + request.param, **LAYOUTS[request.param])
    return ix.Table(lab.state)


def _keys(frame: Any) -> Counter[tuple[int, str, int | None]]:
    rows = frame.select(["content", "file_path", "content_offset"]).to_pylist()
    return Counter((r["content"], r["file_path"], r["content_offset"]) for r in rows)


def _ids(t: ix.Table) -> list[int]:
    return [s.snapshot_id for s in t.snapshots]


def test_the_histories_have_what_v4_is_about(t: ix.Table) -> None:
    rows = [row for i in _ids(t) for row in root_of(t, i)]
    kinds = {(row["type"], row["status"]) for row in rows}
    assert {0, 1, 3, 4, 5} <= {kind for kind, _ in kinds}
    assert any(status == 2 for _, status in kinds)


def test_files_are_those_that_count_in_every_snapshot(t: ix.Table) -> None:
    for i in _ids(t):
        inspect = t.at(snapshot=i).inspect
        want = live_of(t, i)
        assert _keys(inspect.files.arrow()) == Counter(list(want)), i
        assert _keys(inspect.data_files.arrow()) == Counter(k for k in want if k[0] == 0)
        assert _keys(inspect.delete_files.arrow()) == Counter(k for k in want if k[0] != 0)
        rows = inspect.files.arrow().select(["content", "file_path", "content_offset", "record_count"]).to_pylist()
        assert all(want[(r["content"], r["file_path"], r["content_offset"])] == r["record_count"] for r in rows)
    assert not [p for p in t.problems if p.severity == "error"]


def test_entries_say_deleted_of_what_a_manifest_dv_removes(t: ix.Table) -> None:
    seen = 0
    for i in _ids(t):
        made = t.at(snapshot=i).inspect.entries.arrow()
        got = Counter(
            (r["data_file"]["file_path"], r["data_file"]["content_offset"], r["status"]) for r in made.to_pylist()
        )
        want = entries_of(t, i)
        assert got == Counter((e["location"], e["offset"], 2 if e["gone"] else e["status"]) for e in want)
        seen += sum(e["gone"] for e in want)
        by = {r["data_file"]["file_path"]: r["snapshot_id"] for r in made.to_pylist() if r["status"] == 2}
        for e in want:
            if e["gone"]:
                rows = [r for r in root_of(t, i) if r["type"] == 5 and r["status"] != 2 and r["for"] == e["leaf"]]
                assert by[e["location"]] in {r["snapshot_id"] or i for r in rows}
    assert seen


def test_content_entries_name_the_vector_that_removes(t: ix.Table) -> None:
    for i in _ids(t):
        made = t.at(snapshot=i).inspect.content_entries.arrow().to_pylist()
        want = entries_of(t, i)
        leaves = [r for r in made if r["manifest"] != t.metadata.snapshot(i).root_location]  # type: ignore[union-attr]
        got = {(r["manifest"], r["ordinal"]): r["manifest_dv"] for r in leaves}
        assert {k for k, v in got.items() if v is not None} == {(e["leaf"], e["ordinal"]) for e in want if e["gone"]}
        assert len(made) - len(leaves) == len(root_of(t, i))
        by_ordinal = {r["ordinal"]: r for r in made if r not in leaves}
        for (leaf, _), vector in got.items():
            if vector is not None:
                assert by_ordinal[vector]["content_type"] == 5
                assert by_ordinal[vector]["referenced_file"] == leaf


def test_partitions_add_up_and_are_rebuilt(t: ix.Table) -> None:
    for i in _ids(t):
        files = t.at(snapshot=i).inspect.files.arrow()
        made = t.at(snapshot=i).inspect.partitions.arrow().to_pylist()
        want: Counter[tuple[Any, ...]] = Counter()
        for r in files.to_pylist():
            want[(r["partition"]["kind"], r["partition"]["id_bucket"], r["content"])] += 1
        got: Counter[tuple[Any, ...]] = Counter()
        for r in made:
            key = (r["partition"]["kind"], r["partition"]["id_bucket"])
            counts = (r["file_count"], r["position_delete_file_count"], r["equality_delete_file_count"])
            got.update({(*key, content): n for content, n in enumerate(counts) if n})
        assert got == want
        for r in files.to_pylist():
            if r["content"] == 0:
                name = r["file_path"].rpartition("/")[2].partition(".")[0]
                assert r["partition"]["id_bucket"] == sum(map(ord, name)) % 4


def test_manifests_are_the_live_ones_with_rebuilt_summaries(t: ix.Table) -> None:
    for i in _ids(t):
        made = t.at(snapshot=i).inspect.manifests.arrow().to_pylist()
        want = [r for r in root_of(t, i) if r["type"] in (3, 4) and r["status"] != 2]
        assert [(r["content"], r["path"]) for r in made] == [(r["type"] - 3, r["location"]) for r in want]
        if t.inspect.expressions.arrow().num_rows and "stats" in (want[0] if want else {}):
            for row in made:
                names = [e["location"].rpartition("/")[2].partition(".")[0] for e in _stored(t, i, row["path"])]
                if row["content"] == 0 and row["partition_summaries"]:
                    buckets = [sum(map(ord, n)) % 4 for n in names]
                    summary = row["partition_summaries"][-1]
                    if summary["lower_bound"] is not None:
                        assert (summary["lower_bound"], summary["upper_bound"]) == (
                            str(min(buckets)),
                            str(max(buckets)),
                        )


def _stored(t: ix.Table, snapshot_id: int, leaf: str) -> list[dict[str, Any]]:
    return [e for e in entries_of(t, snapshot_id) if e["leaf"] == leaf and e["status"] != 2]


def test_manifest_deletion_vectors(t: ix.Table) -> None:
    for i in _ids(t):
        made = t.at(snapshot=i).inspect.manifest_deletion_vectors.arrow().to_pylist()
        want = [r for r in root_of(t, i) if r["type"] == 5]
        assert [(r["manifest"], r["cardinality"], r["status"]) for r in made] == [
            (r["for"], r["rows"], r["status"]) for r in want
        ]
        assert [r["storage"] for r in made] == ["puffin" if r["inline"] is None else "inline" for r in want]
        assert [r["content_size_in_bytes"] for r in made] == [
            r["size"] if r["inline"] is None else len(r["inline"]) for r in want
        ]
        live = Counter(e["leaf"] for e in entries_of(t, i) if e["gone"])
        assert Counter({r["manifest"]: 0 for r in made}) + live == live


def test_every_metadata_table_is_valid_and_travels(t: ix.Table) -> None:
    for at in (t, t.at(snapshot=_ids(t)[2])):
        for name in at.inspect:
            made = at.inspect[name].arrow()
            made.validate(full=True)
            assert made.schema.equals(at.inspect[name].schema), name
            at.inspect[name](flat=True)


def test_all_files_are_those_of_any_snapshot(t: ix.Table) -> None:
    want = {k for i in _ids(t) for k in live_of(t, i)}
    assert set(_keys(t.inspect.all_files.arrow())) == want
    assert set(_keys(t.inspect.all_data_files.arrow())) == {k for k in want if k[0] == 0}


def test_column_stats_have_the_manifests_too(t: ix.Table) -> None:
    made = t.inspect.column_stats.arrow()
    live = {k[1] for k in live_of(t, _ids(t)[-1]) if k[0] == 0}
    rows = build.to_pylist(made.filter(pc.and_(pc.equal(made["content"], 0), pc.equal(made["column"], "id"))))
    assert {r["file_path"] for r in rows} == live
    leaves = {r["location"] for r in root_of(t, _ids(t)[-1]) if r["type"] == 3 and r["status"] != 2}
    some = made.filter(pc.equal(made["content"], 3))
    assert set(some["file_path"].to_pylist()) == leaves
    for r in some.filter(pc.equal(some["column"], "id")).to_pylist():
        inside = [e["location"] for e in _stored(t, _ids(t)[-1], r["file_path"])]
        assert r["value_count"] == sum(e["rows"] for e in _stored(t, _ids(t)[-1], r["file_path"])), inside


def test_expressions(t: ix.Table) -> None:
    made = t.inspect.expressions.arrow().to_pylist()
    assert [(r["expression"], r["partition_field_id"], r["used_by_specs"]) for r in made] == [
        ("bucket(4, id)", 1001, [0])
    ]


def test_every_pair_of_snapshots_matches_brute_force(t: ix.Table) -> None:
    ids = _ids(t)
    live = {i: live_of(t, i) for i in ids}
    for a, b in itertools.product(ids, ids):
        d = t.diff(a, b)
        got = Counter((r["change"], r["location"], r["content_offset"]) for r in d.files_arrow.to_pylist())
        want = Counter([("added", k[1], k[2]) for k in live[b].keys() - live[a].keys()])
        want += Counter([("removed", k[1], k[2]) for k in live[a].keys() - live[b].keys()])
        assert got == want, (a, b)
        kept = live[a].keys() & live[b].keys()
        counts = d.counts_arrow.to_pylist()
        assert sum(r["carried_over_files"] for r in counts) == len(kept)
        assert sum(r["carried_over_rows"] for r in counts) == sum(live[b][k] for k in kept)


def test_the_diff_lists_manifests_and_their_vectors(t: ix.Table) -> None:
    ids = _ids(t)
    for a, b in itertools.pairwise(ids):
        rows = t.diff(a, b).manifests_arrow.to_pylist()
        for kinds, content in (((3, 4), ("data", "deletes")), ((5,), ("manifest DV",))):
            before, after = (_root_keys(t, i, kinds) for i in (a, b))
            got = Counter(r["change"] for r in rows if r["content"] in content)
            shared = (before & after).total()
            want = {"added": after.total() - shared, "removed": before.total() - shared, "carried over": shared}
            assert got == Counter(want), (a, b)


def _root_keys(t: ix.Table, snapshot_id: int, kinds: tuple[int, ...]) -> Counter[tuple[Any, ...]]:
    rows = [r for r in root_of(t, snapshot_id) if r["type"] in kinds and r["status"] != 2]
    return Counter(
        (r["type"], r["location"], r["offset"], r["inline"], r["for"]) for r in rows if r["type"] == 5
    ) or Counter((r["type"], r["location"]) for r in rows)


def test_totals_of_the_root_alone(t: ix.Table) -> None:
    from iceexplore.graph._card import counted

    for i in _ids(t):
        state = t.at(snapshot=i).state
        root = state.root()
        assert root is not None
        live = live_of(t, i)
        data = [rows for k, rows in live.items() if k[0] == 0]
        want = {"data_files": len(data), "records": sum(data), "delete_files": len(live) - len(data)}
        assert counted(state, root) == want
        gone = any(e["gone"] and e["type"] == 0 for e in entries_of(t, i))
        assert counted(state, root, read_leaves=False) == {**want, "records": None if gone else sum(data)}


def test_the_tree_marks_every_row_by_what_became_of_it(t: ix.Table) -> None:
    for i in _ids(t):
        tree = t.tree(snapshots=i, max_nodes=500)
        root = root_of(t, i)
        nodes = {n.id: n for n in tree.nodes}
        assert nodes[f"root:{i}"].kind == "root-manifest"
        assert nodes[f"root:{i}"].child_count == len(root)
        for at, row in enumerate(root):
            node = nodes[f"{'manifest' if row['type'] in (3, 4) else 'file'}:{i}:{at}"]
            mark = {0: "carried", 1: "added", 2: "removed"}[row["status"]]
            assert mark in node.marks, (row, node)
            assert node.level == 4
        gone = Counter(e["leaf"] for e in entries_of(t, i) if e["gone"])
        for node in tree.nodes:
            if node.kind == "data-manifest" and "removed" not in node.marks:
                count = gone.get(node.location, 0)
                assert (node.fields.get("removed_entries") or 0) == count
                assert any("removed by" in line for line in node.lines) == bool(count)


def test_the_leaves_in_the_tree_show_what_is_removed(t: ix.Table) -> None:
    parents = {s.snapshot_id: s.parent_snapshot_id for s in t.snapshots}
    for i in _ids(t):
        parent = parents[i]
        then = [] if parent is None else entries_of(t, parent)
        before = {(e["leaf"], e["ordinal"]) for e in then if e["gone"]}
        removed = {
            (e["leaf"], e["ordinal"]): (e["leaf"], e["ordinal"]) in before for e in entries_of(t, i) if e["gone"]
        }
        tree = t.tree(snapshots=i, depth="files", max_nodes=900)
        by_id = {n.id: n for n in tree.nodes}
        got = {}
        for node in tree.nodes:
            if "removed_by" in node.fields:
                leaf = by_id[str(node.parent)].location
                got[(leaf, int(node.id.rpartition(":")[2]))] = "carried" in node.marks
                assert "removed" in node.marks
        assert got == removed, i


def test_edges_of_the_tree(t: ix.Table) -> None:
    for i in _ids(t):
        tree = t.tree(snapshots=i, depth="files", max_nodes=900)
        nodes = {n.id: n for n in tree.nodes}
        got = {(nodes[e.source].kind, e.target) for e in tree.edges if e.kind == "applies-to"}
        root = root_of(t, i)
        live = {r["location"]: at for at, r in enumerate(root) if r["type"] == 3 and r["status"] != 2}
        for row in root:
            if row["type"] == 5 and row["status"] != 2 and row["for"] in live:
                assert ("manifest-dv", f"manifest:{i}:{live[row['for']]}") in got
            if row["type"] == 4 and row["for"] is not None and row["status"] != 2:
                assert ("delete-manifest", f"manifest:{i}:{live[row['for']]}") in got
        vectors = [k for k in live_of(t, i) if k[0] == 1]
        assert sum(kind == "deletion-vector" for kind, _ in got) == len(vectors)


def test_every_tree_draws(t: ix.Table) -> None:
    for tree in (t.tree(snapshots="all", depth="files", max_nodes=300), t.tree(max_nodes=5), t.tree(labels="full")):
        assert "<svg" in str(tree.to_svg())
        assert tree.to_text()
        assert "flowchart" in str(tree.to_mermaid())
        for node in tree.nodes:
            node.to_dict()
            if not node.id.startswith(("more:", "carried:")):
                assert tree.node(node.id).kind == node.kind or node.kind.startswith(("manifest-list", "root"))
