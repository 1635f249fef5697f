"""Check for metadata that has accumulated: snapshots, metadata files, schemas, partition specs and manifests."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits import duration, expire_snapshots
from iceexplore.doctor.examination._examination import Examination
from iceexplore.doctor.health._finding import first_number, health_finding
from iceexplore.doctor.maintenance._metadata_files import plan_metadata_files
from iceexplore.doctor.maintenance._plan import DEFAULT, Threshold, threshold
from iceexplore.doctor.maintenance._unused import unused_schemas_and_specs
from iceexplore.doctor.model._finding import Finding
from iceexplore.graph import amount, live_manifests
from iceexplore.metadata import Snapshot, ancestry

__all__ = ["check_manifest_sizes", "check_metadata_files", "check_schemas", "check_snapshots"]

_AGE, _KEPT = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
#: Java: ``TableProperties.MAX_SNAPSHOT_AGE_MS_DEFAULT``, five days.
_MAX_AGE_MS = 432_000_000
_MOST = "write.metadata.previous-versions-max"
#: To find partition specs that no snapshot uses, the manifest lists of all snapshots are read (in V4, the root
#: manifests). If a table with several specs has more snapshots than this, the check is skipped.
_MOST_LISTS, _MOST_V4_ROOTS = 200, 20


def check_snapshots(examination: Examination) -> Iterator[Finding]:
    """Check for snapshots that ``expire_snapshots`` would remove now.

    Yield a finding for each branch with such snapshots, and one for all such snapshots outside the branches.
    """
    state = examination.state
    metadata = state.metadata
    if str(metadata.properties.get("gc.enabled", "true")).lower() == "false":
        return  # gc.enabled is false: engines then refuse to expire snapshots
    _, expired = expire_snapshots(state.opened.document, now_ms=examination.now_ms)
    left = dict.fromkeys(expired)
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    for name, ref in metadata.refs.items():
        head = by_id.get(ref.snapshot_id)
        if head is None or ref.type == "tag":
            continue
        mine = [s for s in ancestry(metadata, head) if s.snapshot_id in left]
        own = ref.max_snapshot_age_ms
        limit = None if own is None else Threshold("max-snapshot-age-ms", str(own), f"branch {name}", duration(own))
        for one in mine:
            del left[one.snapshot_id]
        if mine:
            yield _old(examination, f"of branch {name}", mine, limit)
    rest = [by_id[i] for i in left if i in by_id]
    if rest:
        yield _old(examination, "outside all branches", rest, None)


def _old(examination: Examination, whose: str, snapshots: list[Snapshot], limit: Threshold | None) -> Finding:
    state = examination.state
    if limit is None:
        limit = threshold(state.metadata.properties, _AGE, _MAX_AGE_MS, show=duration)
    oldest = min(snapshots, key=lambda s: s.timestamp_ms)
    age = duration(max(0, examination.now_ms - oldest.timestamp_ms))
    be = "is" if len(snapshots) == 1 else "are"
    text = (
        f"{amount(len(snapshots), 'snapshot')} {whose} {be} older than the retention settings allow: their "
        "files take up space, and every reader loads their metadata."
    )
    places = [f"{state.metadata_location}#snapshot {s.snapshot_id}" for s in snapshots]
    return health_finding(
        examination,
        "snapshots-old",
        f"{state.metadata_location}#snapshot {oldest.snapshot_id}",
        text,
        field="timestamp-ms",
        found=f"{amount(len(snapshots), 'snapshot')}, the oldest from {age} ago",
        thresholds=(limit, threshold(state.metadata.properties, _KEPT, 1)),
        count=len(snapshots),
        places=places,
        snapshots=[s.snapshot_id for s in snapshots],
    )


def check_metadata_files(examination: Examination) -> Iterator[Finding]:
    """Check for old metadata files that commits leave behind.

    The metadata log is full when it lists ``write.metadata.previous-versions-max`` files. From then on, each commit
    drops the oldest metadata file from the log. The file itself stays, unless the table property
    ``write.metadata.delete-after-commit.enabled`` is true. As long as the log is not full, no file has been dropped
    from it, so the metadata folder is not listed.
    """
    state = examination.state
    most = int(first_number(dict(state.metadata.properties), _MOST, 100).value)
    if len(state.metadata.metadata_log) + 1 <= max(1, most):
        return  # the metadata log is not full, so no metadata file has been dropped from it
    plan = plan_metadata_files(state, lambda sandbox: sandbox.state)
    if not plan.nothing:
        yield health_finding(
            examination,
            "metadata-files-many",
            state.metadata_location,
            f"Commits leave old metadata files behind: {plan.text}.",
            field="metadata-log",
            found=f"{len(plan.files) + len(plan.next_commit):,} files",
            thresholds=plan.reasons,
            snapshots=(),
        )


def check_schemas(examination: Examination) -> Iterator[Finding]:
    """Check for unused schemas and partition specs; manifest lists are read only if there are several specs."""
    state = examination.state
    metadata = state.metadata
    many = len(metadata.snapshots) > (_MOST_V4_ROOTS if metadata.may_have_root_manifests else _MOST_LISTS)
    if len({s.spec_id for s in metadata.partition_specs}) > 1 and many:
        why = f"the manifest lists of all {len(metadata.snapshots):,} snapshots would have to be read"
        examination.cannot_know("unused schemas and partition specs", why)
        return
    schemas, specs, _ = unused_schemas_and_specs(state, metadata.snapshots)
    if not schemas and not specs:
        return
    parts = [amount(len(ids), what) for ids, what in ((schemas, "schema"), (specs, "partition spec")) if ids]
    names = [f"#schema {i}" for i in schemas] + [f"#spec {i}" for i in specs]
    yield health_finding(
        examination,
        "schemas-unused",
        f"{state.metadata_location}{names[0]}",
        f"Every metadata file repeats {' and '.join(parts)} that no snapshot uses.",
        field="schemas" if schemas else "partition-specs",
        found=", ".join(name.removeprefix("#") for name in names[:20]),
        thresholds=(Threshold("clean_expired_metadata", "false", DEFAULT),),
        count=len(names),
        places=[f"{state.metadata_location}{name}" for name in names[:20]],
        snapshots=(),
    )


def check_manifest_sizes(examination: Examination) -> Iterator[Finding]:
    """Check whether the snapshot has many small manifests.

    A manifest is small if it has less than half of the target size (``commit.manifest.target-size-bytes``). A
    finding needs at least ``commit.manifest.min-count-to-merge`` small manifests: so many manifests make a commit merge
    them.
    """
    state = examination.state
    root = None if state.snapshot is None else examination.roots.get(state.snapshot.snapshot_id)
    rows = [] if root is None else live_manifests(root)
    if root is None or not rows:
        return
    properties = dict(state.metadata.properties)
    target = first_number(properties, "commit.manifest.target-size-bytes", 8 << 20)
    least = first_number(properties, "commit.manifest.min-count-to-merge", 100)
    size = int(target.value)
    sizes = pc.fill_null(root.entries["file_size_in_bytes"].take(pa.array(rows, pa.int64())), size)
    small = pc.sum(pc.less(sizes, size // 2)).as_py() or 0
    if small >= int(least.value):
        text = (
            f"{small:,} of {len(rows):,} manifests are smaller than half the target size of {size:,} bytes: planning "
            "opens each of them."
        )
        yield health_finding(
            examination, "manifests-fragmented", root.location, text, found=small, thresholds=(least, target)
        )
