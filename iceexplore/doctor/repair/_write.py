"""Write a draft to a sandbox: its manifest lists and trees, and then the metadata file."""

from __future__ import annotations

from iceexplore.commits import Sandbox
from iceexplore.doctor.repair._draft import Draft, number_in
from iceexplore.doctor.repair._lists import ListWriter
from iceexplore.doctor.repair._trees import write_trees

__all__ = ["write_draft"]


def write_draft(draft: Draft, sandbox: Sandbox) -> None:
    """Write the edited manifests, manifest lists and trees to a sandbox, and commit the edited metadata.

    Raises
    ------
    IceexploreError
        A file cannot be written, for example because a required value is missing.
    """
    _drop_snapshots(draft)
    for location, data in draft.new_files.items():
        sandbox.storage.write(location, data, kind="delete-file")
    by_id = {s.snapshot_id: s for s in draft.state.metadata.snapshots}
    lists = ListWriter(draft, sandbox)
    for values in draft.snapshots():
        snapshot = by_id.get(number_in(values, "snapshot-id") or 0)
        if snapshot is not None:
            lists.write(snapshot, values)
    write_trees(draft, sandbox)
    document = draft.document
    sandbox.commit(document_change=lambda _d, _ms: document, what="repair")


def _drop_snapshots(draft: Draft) -> None:
    """Remove the snapshots in `Draft.dropped_snapshots` from the draft's metadata document.

    Their entries in the snapshot log and in the lists of statistics files are removed, too. If the current snapshot or
    the snapshot of a branch is removed, the table or the branch moves to the newest ancestor that remains. If there is
    none, the table has no current snapshot, and the branch is removed. Tags of removed snapshots are removed, too.
    """
    if not draft.dropped_snapshots:
        return
    gone = draft.dropped_snapshots
    parents = {number_in(s, "snapshot-id"): number_in(s, "parent-snapshot-id") for s in draft.snapshots()}

    def surviving(snapshot_id: int | None) -> int | None:
        seen: set[int | None] = set()
        while snapshot_id in gone and snapshot_id not in seen:
            seen.add(snapshot_id)
            snapshot_id = parents.get(snapshot_id)
        return snapshot_id if snapshot_id in parents else None

    document = draft.document
    document["snapshots"] = [s for s in draft.snapshots() if number_in(s, "snapshot-id") not in gone]
    refs = {}
    for name, ref in draft.refs().items():
        at = surviving(number_in(ref, "snapshot-id"))
        if at is not None and (at == ref.get("snapshot-id") or ref.get("type") == "branch"):
            refs[name] = {**ref, "snapshot-id": at}
    if "refs" in document:
        document["refs"] = refs
    at = surviving(number_in(document, "current-snapshot-id"))
    document["current-snapshot-id"] = -1 if at is None else at
    for key in ("snapshot-log", "statistics", "partition-statistics"):
        if isinstance(document.get(key), list):
            document[key] = [e for e in draft.objects(key) if number_in(e, "snapshot-id") not in gone]
