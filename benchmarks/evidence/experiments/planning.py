"""Plans with filters: partition tuples kept or derived, columns that are no partition, and delete manifests."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import commit_violating_rules, root_rows
from iceexplore.errors import RULES
from iceexplore.manifests import ContentType, EntryBatch
from iceexplore.metadata import PrimitiveType, apply_transform
from iceexplore.planning import plan_scan
from iceexplore.storage import CACHE
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require

__all__ = ["PLANNING", "PLAN_LAYOUTS", "forget"]

PLAN_LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"format_version": 3},
    "V4, tuple": {"partition_storage": "tuple"},
    "V4, derived (a)": {"partition_storage": "derived"},
    "V4, source (b)": {"partition_storage": "source"},
}
_SCHEMA = {"id": "long", "ts": "timestamp", "region": "string", "user": "string", "noise": "long"}
_ROWS, _FIRST = 1000, date(2026, 1, 1)
#: For each spec a filter that leaves one of the manifests, where its values are kept apart.
_SPECS = {
    "region": "region = 'r03'",
    "day(ts)": "ts >= '2026-01-04' and ts < '2026-01-05'",
    "truncate(2, user)": "user = 'u3-0000'",
    "bucket(16, id)": "id = {middle}",
}


def forget() -> None:
    """Empty the cache of decoded metadata."""
    limit = CACHE.max_bytes
    CACHE.max_bytes = 0
    CACHE.max_bytes = limit


def _files(spec: str, manifest: int, files: int) -> list[dict[str, Any]]:
    """Return the files of one manifest: a range of ids, a day, a region, users of a prefix; noise everywhere."""
    found = []
    day = _FIRST + timedelta(days=manifest)
    for i in range(files):
        number = manifest * files + i
        partition = {
            "region": {"region": f"r{manifest:02}"},
            "day(ts)": {"ts_day": day.isoformat()},
            "truncate(2, user)": {"user_trunc_2": f"u{manifest % 10}"},
            "bucket(16, id)": {"id_bucket_16": number % 16},
        }[spec]
        low = {
            "id": number * _ROWS,
            "ts": f"{day}T00:00:00",
            "region": f"r{manifest:02}",
            "user": f"u{manifest % 10}-{i:04}",
        }
        high = {
            "id": number * _ROWS + _ROWS - 1,
            "ts": f"{day}T23:00:00",
            "region": f"r{manifest:02}",
            "user": f"u{manifest % 10}-{i + 1:04}",
        }
        found.append(
            {
                "location": f"/warehouse/db/events/data/{number:07}.parquet",
                "record_count": _ROWS,
                "file_size_in_bytes": 60_000 + number % 977,
                "partition": partition,
                "lower_bounds": {**low, "noise": number % 7},
                "upper_bounds": {**high, "noise": 1_000_000 - number % 7},
                "value_counts": dict.fromkeys(_SCHEMA, _ROWS),
                "null_value_counts": dict.fromkeys(_SCHEMA, 0),
            }
        )
    return found


def _table(spec: str, layout: str, manifests: int, files: int) -> Simulation:
    options = PLAN_LAYOUTS[layout] if layout == "v3" else {**PLAN_LAYOUTS[layout], "flush_data_files": 0}
    s = ix.empty(_SCHEMA, partition_by=spec, seed=1, properties={"commit.manifest-merge.enabled": "false"}, **options)
    for manifest in range(manifests):
        s.append(_files(spec, manifest, files), check_duplicates=False)
    return s


def _opened(s: Simulation, where: str) -> Iterator[tuple[str, str, float]]:
    forget()
    plan = plan_scan(s.state, where)
    reads = {r.location: r.length for r in plan.log if not r.cached and r.kind in ("manifest-list", "manifest")}
    yield "manifests opened", "files", len(reads) - 1
    yield "read with the root or list", "bytes", sum(reads.values())
    yield "data files left", "files", len(plan.files)


def _measure(
    seed: int, *, manifests: int, files: int, leaf: int, deletes: int, many: tuple[int, int]
) -> Iterator[tuple[Case, str, str, float]]:
    middle = _middle(manifests * files // 2)
    for spec, where in _SPECS.items():
        for layout in PLAN_LAYOUTS:
            s = _table(spec, layout, manifests, files)
            for column, condition in (
                ("the partition", where.format(middle=middle)),
                ("another column, in order", f"id = {middle}"),
                ("another column, anywhere", "noise = 77"),
            ):
                if spec != "region" and column != "the partition":
                    continue
                at = case(manifests=manifests, partition_by=spec, filter_on=column, layout=layout)
                yield from ((at, *found) for found in _opened(s, condition))
            s.close()
    yield from _tuples(leaf)
    yield from _many(*many)
    yield from _deletes(deletes)
    yield from _vain(manifests, files)


def _many(manifests: int, files: int) -> Iterator[tuple[Case, str, str, float]]:
    """Yield what a filter on a column that is no partition opens in a large table."""
    number = manifests * files
    for layout in ("v3", "V4, derived (a)"):
        s = _table("region", layout, manifests, files)
        for column, condition in (
            ("another column, in order", f"id = {number // 2 * _ROWS}"),
            ("another column, anywhere", "noise = 77"),
        ):
            at = case(files=number, leaves=manifests, filter_on=column, layout=layout)
            yield from ((at, *found) for found in _opened(s, condition))
        s.close()


def _middle(number: int) -> int:
    """Return an id of a file that is in the file's bucket."""
    ids = build.array(range(number * _ROWS, number * _ROWS + _ROWS), pa.int64())
    buckets = apply_transform("bucket[16]", PrimitiveType("long"), ids).to_pylist()
    return number * _ROWS + buckets.index(number % 16)


def _tuples(files: int) -> Iterator[tuple[Case, str, str, float]]:
    """Yield the bytes of a leaf, and of its columns that a reader needs to know the files' partitions."""
    for spec in _SPECS:
        for layout in PLAN_LAYOUTS:
            if layout == "v3":
                continue
            s = _table(spec, layout, 1, files)
            root = s.state.root()
            assert root is not None
            location = next(
                str(row["location"])
                for row in root.entries.select(["location", "content_type"]).to_pylist()
                if row["content_type"] == ContentType.DATA_MANIFEST
            )
            data = s.state.storage.read(location, kind="manifest")
            group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
            sizes = {
                group.column(i).path_in_schema: group.column(i).total_compressed_size for i in range(group.num_columns)
            }
            at = case(files_in_a_leaf=files, partition_by=spec, layout=layout)
            yield at, "leaf, for a file", "bytes", len(data) / files
            yield (
                at,
                "to know the partition, for a file",
                "bytes",
                sum(v for k, v in sizes.items() if _is_partition(k, spec)) / files,
            )
            s.close()


def _is_partition(path: str, spec: str) -> bool:
    """Whether a column of a leaf holds partition values of a spec: of the tuple, derived, or the source's."""
    if path.startswith("partition."):
        return True
    parts = path.split(".")
    if not parts[0].endswith("stats") or len(parts) < 3:
        return False
    name, field = parts[1], parts[2]
    if field.startswith("partition_"):
        return True
    derived = {
        "region": "region",
        "day(ts)": "ts_day",
        "truncate(2, user)": "user_trunc_2",
        "bucket(16, id)": "id_bucket_16",
    }[spec]
    return name == derived and field in ("lower_bound", "derived_value")


def _deletes(count: int) -> Iterator[tuple[Case, str, str, float]]:
    """Yield what a filter opens that leaves one of so many leaves, each with DVs of its own."""
    layouts: dict[str, dict[str, Any]] = {
        "v3": {"format_version": 3},
        "V4": {"flush_data_files": 0, "flush_delete_files": 0, "unaffiliated_manifests": 0},
    }
    for layout, options in layouts.items():
        s = ix.empty(
            _SCHEMA, partition_by="region", seed=1, properties={"commit.manifest-merge.enabled": "false"}, **options
        )
        for manifest in range(count):
            s.append(_files("region", manifest, 3), check_duplicates=False)
        root = s.state.root()
        assert root is not None
        names = [build.to_pylist(m.entries["location"]) for m in s.state.reader.leaves(root)]
        for held in names:
            s.row_delta(deletes={str(name): [1] for name in held})
        for filter_on, where in (
            ("the partition", "region = 'r03'"),
            ("another column, in order", f"id = {9 * _ROWS}"),
        ):
            at = case(delete_manifests=count, filter_on=filter_on, layout=layout)
            yield from ((at, *found) for found in _opened(s, where))
        s.row_delta(equality={"id": [9 * _ROWS + 1], "region": ["r03"]}, equality_partition={"region": "r03"})
        plan = plan_scan(s.state, None)
        at = case(equality_delete_of="one partition", data_files=3 * count, layout=layout)
        pairs = plan.files.matched.equality
        yield at, "data files that it applies to", "files", sum(len(x or ()) for x in pairs.to_pylist())
        s.close()


def _vain(manifests: int, files: int) -> Iterator[tuple[Case, str, str, float]]:
    """Yield what the same filter opens if leaves have no statistics in the root, and if they are out of date."""
    where = "region = 'r03'"
    s = _table("region", "V4, derived (a)", manifests, files)
    first = case(manifests=manifests, partition_by="region", root="statistics of leaves")
    yield from ((first, *found) for found in _opened(s, where))
    rows = root_rows(s.state)
    bare = EntryBatch(rows.with_columns(status=0).entries)
    other = s.copy()
    commit_violating_rules(other._sandbox, [bare], relaxed=list(RULES), operation="replace")
    other.refresh()
    at = case(manifests=manifests, partition_by="region", root="no statistics of leaves")
    yield from ((at, *found) for found in _opened(other, where))
    gone = [f["location"] for f in _files("region", 3, files)]
    s.delete_files(gone[: len(gone) - 1])
    last = case(manifests=manifests, partition_by="region", root="all but one file of a leaf removed")
    yield from ((last, *found) for found in _opened(s, f"id = {3 * files * _ROWS}"))
    s.close()


def _at(n: Numbers, metric: str, spec: str, layout: str, column: str = "the partition") -> float:
    manifests = n.choices("manifests")[0]
    return n.mean(metric, manifests=manifests, partition_by=spec, filter_on=column, layout=layout)


def _partitions(n: Numbers) -> Answer:
    texts = []
    for spec in _SPECS:
        opened = {layout: _at(n, "manifests opened", spec, layout) for layout in PLAN_LAYOUTS}
        if spec == "bucket(16, id)":
            require(opened["V4, derived (a)"] <= opened["v3"], "V4 opens no more than v3")
        else:
            require(len(set(opened.values())) == 1, f"all layouts open the same manifests for {spec}")
        texts.append(f"{opened['v3']:.0f} (v3) and {opened['V4, derived (a)']:.0f} (V4) for {spec}")
    left = {spec: {_at(n, "data files left", spec, layout) for layout in PLAN_LAYOUTS} for spec in _SPECS}
    return Answer(
        "the same" if all(len(v) == 1 for v in left.values()) else "not the same",
        f"A filter on the partition opens, of {n.choices('manifests')[0]} data manifests, {', '.join(texts)}; "
        "whether the "
        "tuple is stored, derived or in the source column changes nothing.",
    )


def _others(n: Numbers) -> Answer:
    name = "another column, in order"
    v3, v4 = (_at(n, "manifests opened", "region", layout, name) for layout in ("v3", "V4, derived (a)"))
    a, b = (_at(n, "read with the root or list", "region", layout, name) for layout in ("v3", "V4, derived (a)"))
    c, d = (
        _at(n, "manifests opened", "region", layout, "another column, anywhere") for layout in ("v3", "V4, derived (a)")
    )
    require(v4 < v3 and b < a and c == d, "statistics of leaves prune where values are in order, and not elsewhere")
    return Answer(
        f"{v4:.0f} instead of {v3:.0f}",
        f"A filter on a column that is no partition, whose values are in order, opens {v4:.0f} of {v3:.0f} data "
        "manifests in V4, all "
        f"in v3, and reads {ratio(b, a)} times the bytes; if the values are anywhere, both open all {c:.0f}.",
    )


def _in_large_tables(n: Numbers) -> Answer:
    files, leaves = n.choices("files")[0], n.choices("leaves")[0]
    order, anywhere = (
        [
            n.mean(
                "read with the root or list", files=files, leaves=leaves, filter_on=f"another column, {where}", layout=x
            )
            for x in ("v3", "V4, derived (a)")
        ]
        for where in ("in order", "anywhere")
    )
    require(order[1] < order[0], "statistics of leaves save bytes where values are in order")
    return Answer(
        f"{ratio(*order)} times fewer bytes",
        f"With {files} files in {leaves} manifests, a filter on a column that is no partition, whose values are in "
        f"order, reads {order[1]:,.0f} bytes of metadata in V4 and {ratio(*order)} times as many in v3 "
        f"({order[0]:,.0f}); "
        f"if the values are anywhere, V4 reads {ratio(anywhere[1], anywhere[0])} times v3's bytes.",
    )


def _affiliated(n: Numbers) -> Answer:
    count = n.choices("delete manifests")[0]
    part, other = (
        [n.mean("manifests opened", delete_manifests=count, filter_on=f, layout=layout) for layout in ("v3", "V4")]
        for f in ("the partition", "another column, in order")
    )
    require(part[1] == 2 and other[1] == 2, "V4 opens a data manifest and its delete manifest")
    return Answer(
        f"{part[1]:.0f}",
        f"With {count} data manifests, a delete manifest for each and a filter that leaves one leaf, V4 opens "
        f"{part[1]:.0f} "
        f"manifests by the partition (v3: {part[0]:.0f}) and {other[1]:.0f} by another column (v3: {other[0]:.0f}).",
    )


def _rebuild(n: Numbers) -> Answer:
    files = n.choices("files in a leaf")[0]
    size = {
        (spec, layout): n.mean(
            "to know the partition, for a file", files_in_a_leaf=files, partition_by=spec, layout=layout
        )
        for spec in _SPECS
        for layout in PLAN_LAYOUTS
        if layout != "v3"
    }
    most = max(abs(size[s, "V4, derived (a)"] - size[s, "V4, tuple"]) for s in _SPECS)
    leaf = {
        layout: sum(n.mean("leaf, for a file", files_in_a_leaf=files, partition_by=s, layout=layout) for s in _SPECS)
        / len(_SPECS)
        for layout in PLAN_LAYOUTS
        if layout != "v3"
    }
    require(most < 2, "derived columns cost about what the tuple costs")
    change = leaf["V4, derived (a)"] - leaf["V4, tuple"]
    spread = "by less than 0.1 bytes" if most < 0.05 else f"by at most {most:.1f} bytes"
    return Answer(
        f"{change:+.1f} bytes",
        f"Over four specs, a leaf of {files} files takes {leaf['V4, tuple']:.1f} bytes for a file with the tuple, "
        f"{leaf['V4, derived (a)']:.1f} with derived columns and {leaf['V4, source (b)']:.1f} in the source column's "
        "struct; "
        f"what a reader reads to know a file's partition differs {spread} between tuple and derived columns.",
    )


def _lost(n: Numbers) -> Answer:
    manifests = n.choices("manifests")[0]
    none, some, stale = (
        n.mean("manifests opened", manifests=manifests, partition_by="region", root=root)
        for root in ("no statistics of leaves", "statistics of leaves", "all but one file of a leaf removed")
    )
    require(some < none, "without statistics of leaves, all are opened")
    return Answer(
        f"{none:.0f} instead of {some:.0f}",
        "If the root has no statistics of its leaves and no partition summaries, a filter on the partition opens "
        f"{none:.0f} data "
        f"manifests instead of {some:.0f}; and a leaf that a manifest DV has left one file is still opened for a "
        "value that "
        f"only its removed files had ({stale:.0f} opened, 0 files left).",
    )


def _equality(n: Numbers) -> Answer:
    total = n.choices("data files")[0]
    v3, v4 = (
        n.mean("data files that it applies to", equality_delete_of="one partition", data_files=total, layout=layout)
        for layout in ("v3", "V4")
    )
    require(v3 == v4, "the rebuilt tuple matches the same data files")
    return Answer(
        f"{v4:.0f} of {total}",
        f"An equality delete of one partition applies to {v4:.0f} of {total} data files in V4, whose tuple is "
        "rebuilt from "
        "statistics, and to the same number in v3.",
    )


PLANNING = Experiment(
    name="planning",
    title="Plans with filters",
    method=(
        "Each manifest has a range of ids, a day, a region and a prefix of users of its own; files of one manifest "
        "are in "
        "different buckets, and the values of `noise` are in all files. v3 stores partition summaries of manifests, V4 "
        "statistics of all columns; the partition of a file is stored as a tuple, as derived columns (layout (a)) or "
        "in the "
        "source column's struct (layout (b)). Nothing is random here: one seed."
    ),
    measure=_measure,
    findings=(
        Finding("Do filters on the partition prune as before?", _partitions),
        Finding("Do filters on other columns prune?", _others),
        Finding("What does that save in a large table?", _in_large_tables),
        Finding("Which delete manifests does a filter open?", _affiliated),
        Finding("What does rebuilding the partition tuple cost?", _rebuild, first=False),
        Finding("Do equality deletes match without a stored tuple?", _equality, first=False),
        Finding("What pruning is lost without partition summaries in manifest_info?", _lost),
    ),
    bars=("manifests opened", "read with the root or list"),
    quick={"manifests": 4, "files": 10, "leaf": 200, "deletes": 4, "many": (5, 50)},
    full={"manifests": 20, "files": 40, "leaf": 5000, "deletes": 20, "many": (200, 5000)},
    seeds=1,
)
