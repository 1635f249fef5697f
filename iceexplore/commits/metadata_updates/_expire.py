"""Expire snapshots (spec, "Snapshot Retention Policy"; Java's ``RemoveSnapshots``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iceexplore.commits.metadata_updates._document import (
    Json,
    ancestors,
    entries,
    now_or,
    read_properties,
    snapshots_by_id,
    the_snapshot,
    whole_number,
    with_values,
)
from iceexplore.commits.metadata_updates._expired import Expired, KeptSnapshot, age_reason, source_of
from iceexplore.commits.metadata_updates._refs import read_refs
from iceexplore.errors import FormatError, OptionError, RuleError, whole_number_of, whole_numbers_of
from iceexplore.render import escape

__all__ = ["expire_snapshots", "remove_schemas_and_specs"]

_MAX_AGE, _MIN_KEPT = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
#: Java's defaults: snapshots are kept for five days, at least one per branch; refs have no maximum age.
_MAX_SNAPSHOT_AGE_MS = 5 * 24 * 60 * 60 * 1000
_MIN_SNAPSHOTS_TO_KEEP = 1
_MAX_REF_AGE_MS = 2**63 - 1


def expire_snapshots(
    document: Mapping[str, Any],
    *,
    ids: Iterable[int] | None = None,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    now_ms: int | None = None,
) -> tuple[Json, Expired]:
    """Return a document without its expired snapshots, and a list of the removed and the kept snapshots (`Expired`).

    First, refs are removed: those whose snapshot is missing, and those other than ``main`` whose snapshot is older than
    the ref's ``max-ref-age-ms``. Then a snapshot is kept if one of these rules applies:

    - A remaining ref points to it.
    - It is among the newest ``retain_last`` snapshots of a branch. If the branch has its own ``min-snapshots-to-keep``,
      this number applies instead.
    - It is in a branch, and its ``timestamp-ms`` is ``older_than_ms`` or later. If the branch has its own
      ``max-snapshot-age-ms``, this age limit applies instead.
    - It is not in any branch, and its ``timestamp-ms`` is ``older_than_ms`` or later.

    All other snapshots expire, and so do those in ``ids``.

    When a snapshot is removed, its entries in ``snapshot-log`` and all earlier entries of this log are removed. The
    reason is that each snapshot in the log was current until the time of the next entry. If only a removed snapshot's
    own entry were missing, the snapshot in the entry before it would seem to have been current for too long. The
    removed snapshot's ``statistics`` and ``partition-statistics`` are removed, too. No file is deleted.

    Parameters
    ----------
    ids
        Ids of snapshots to expire whatever their age. As in Java, old snapshots expire as well; to expire only the
        given ones, set ``older_than_ms=0``.
    older_than_ms
        Snapshots from before this time expire, unless a rule keeps them; in milliseconds since the epoch. By default,
        it is computed from ``now_ms`` and the table property ``history.expire.max-snapshot-age-ms`` (5 days if unset).
    retain_last
        The minimum number of snapshots to keep in each branch; by default the table property
        ``history.expire.min-snapshots-to-keep`` (1 if unset).
    now_ms
        The time, in milliseconds since the epoch, from which ages are computed; by default the system clock's.

    Raises
    ------
    RuleError
        ``expire-referenced`` (a ref points to one of ``ids``), ``expire-gc`` (``gc.enabled`` is false).
    SnapshotNotFoundError
        One of ``ids`` is not in the table.
    OptionError
        ``retain_last`` is not an integer of at least 1, or one of ``ids`` is not an integer.
    """
    properties = read_properties(document)
    if str(properties.get("gc.enabled", "true")).lower() == "false":
        raise RuleError(
            "expire-gc", "gc.enabled is false: nothing expires, because other tables may use this table's files"
        )
    ids = None if ids is None else whole_numbers_of("ids", ids)
    if retain_last is not None:
        retain_last = whole_number_of("retain_last", retain_last, 1)
    now = now_or(now_ms)
    age_source = source_of(_MAX_AGE, properties, None if older_than_ms is None else "older_than=")
    count_source = source_of(_MIN_KEPT, properties, None if retain_last is None else "retain_last=")
    if older_than_ms is None:
        older_than_ms = now - _number(properties, _MAX_AGE, _MAX_SNAPSHOT_AGE_MS)
    if retain_last is None:
        retain_last = _number(properties, _MIN_KEPT, _MIN_SNAPSHOTS_TO_KEEP)

    snapshots = snapshots_by_id(document)
    refs = _living_refs(document, snapshots, _number(properties, "history.expire.max-ref-age-ms", _MAX_REF_AGE_MS), now)
    expired = _named(ids or (), snapshots, refs)
    # If several rules keep a snapshot, the first one is reported. Refs are checked first, because a ref is a clearer
    # reason than the snapshot's age.
    kept: dict[int, str] = {}
    for name, ref in refs.items():
        kind = "tag" if ref.get("type") == "tag" else "branch"
        kept.setdefault(whole_number(ref, "snapshot-id", -1), f"{kind} {escape.text(repr(name))} points to it")
    reachable = set(kept)
    for name, ref in refs.items():
        if ref.get("type") == "tag":
            continue
        line = list(ancestors(snapshots, whole_number(ref, "snapshot-id", -1)))
        reachable.update(s["snapshot-id"] for s in line)
        rules = _BranchRules(
            escape.text(repr(name)),
            now,
            now - whole_number(ref, "max-snapshot-age-ms", now - older_than_ms),
            "the branch's max-snapshot-age-ms" if "max-snapshot-age-ms" in ref else age_source,
            whole_number(ref, "min-snapshots-to-keep", retain_last),
            "the branch's min-snapshots-to-keep" if "min-snapshots-to-keep" in ref else count_source,
        )
        for snapshot_id, reason in rules.keep(line):
            kept.setdefault(snapshot_id, reason)
    for snapshot_id, snapshot in snapshots.items():
        if snapshot_id not in reachable and whole_number(snapshot, "timestamp-ms", 0) >= older_than_ms:
            kept.setdefault(snapshot_id, age_reason(now - older_than_ms, age_source, ", in no branch"))
    gone = [i for i in snapshots if i in expired or i not in kept]
    stayed = (KeptSnapshot(i, kept[i]) for i in snapshots if i in kept and i not in expired)
    too_old = [name for name in read_refs(document) if name not in refs]
    return _without(document, set(gone), refs), Expired(gone, stayed, too_old)


def remove_schemas_and_specs(
    document: Mapping[str, Any], *, schemas: Iterable[int] = (), specs: Iterable[int] = ()
) -> Json:
    """Return a document without the schemas and partition specs with these ids (Java's ``cleanExpiredMetadata``).

    Raises
    ------
    OptionError
        The current schema or the default spec is among those to remove.
    """
    out = dict(document)
    for key, of, current, given in (
        ("schemas", "schema-id", "current-schema-id", set(schemas)),
        ("partition-specs", "spec-id", "default-spec-id", set(specs)),
    ):
        if document.get(current) in given:
            raise OptionError(f"{key}: {document[current]} is the {current}, which cannot be removed")
        if given:
            out[key] = [item for item in entries(document, key) if whole_number(item, of, -1) not in given]
    return out


def _living_refs(
    document: Mapping[str, Any], snapshots: Mapping[int, Json], default_age: int, now: int
) -> dict[str, Json]:
    out = {}
    for name, ref in read_refs(document).items():
        snapshot = snapshots.get(whole_number(ref, "snapshot-id", -1))
        oldest = now - whole_number(ref, "max-ref-age-ms", default_age)
        if snapshot is not None and (name == "main" or whole_number(snapshot, "timestamp-ms", 0) >= oldest):
            out[name] = ref
    return out


def _named(ids: Iterable[int], snapshots: Mapping[int, Json], refs: Mapping[str, Json]) -> set[int]:
    found = set(ids)
    for snapshot_id in sorted(found):
        the_snapshot(snapshots, snapshot_id)
        holders = [name for name, ref in refs.items() if ref.get("snapshot-id") == snapshot_id]
        if holders:
            raise RuleError(
                "expire-referenced",
                f"{', '.join(map(repr, holders))} references snapshot {snapshot_id}: move or remove the ref first",
            )
    return found


@dataclass(frozen=True)
class _BranchRules:
    """The two retention limits of a branch: a minimum number of snapshots, and a maximum age.

    Attributes
    ----------
    name
        The branch's name as quoted text, such as ``'main'``.
    now
        The time from which ages are computed, in milliseconds since the epoch.
    oldest
        Snapshots from this time or later are kept; in milliseconds since the epoch.
    at_least
        The number of newest snapshots that are kept even if they are from before ``oldest``.
    age_source, count_source
        A text that names what sets ``oldest`` or ``at_least``: an argument, a setting of the branch, a table property,
        or a default. It is part of the reasons that `keep` yields.
    """

    name: str
    now: int
    oldest: int
    age_source: str
    at_least: int
    count_source: str

    def keep(self, line: Iterable[Json]) -> Iterator[tuple[int, str]]:
        """Yield the ids of the branch's snapshots that are kept, newest first, each with the reason as text.

        ``line`` has the JSON objects of all snapshots of the branch, newest first.
        """
        for place, snapshot in enumerate(line):
            if whole_number(snapshot, "timestamp-ms", 0) >= self.oldest:
                where = f", in branch {self.name}"
                yield snapshot["snapshot-id"], age_reason(self.now - self.oldest, self.age_source, where)
            elif place < self.at_least:
                newest = f"among the newest {self.at_least} of branch {self.name} ({self.count_source})"
                yield snapshot["snapshot-id"], newest
            else:
                return


def _without(document: Mapping[str, Any], gone: set[int], refs: dict[str, Json]) -> Json:
    out = dict(document)
    if document.get("refs"):
        out["refs"] = refs
    if not gone:
        return out
    for key in ("snapshots", "statistics", "partition-statistics"):
        if document.get(key):
            out[key] = [item for item in entries(document, key) if whole_number(item, "snapshot-id", -1) not in gone]
    if document.get("snapshot-log"):
        left = {s.get("snapshot-id") for s in out["snapshots"]}
        log = entries(document, "snapshot-log")
        cut = max(
            (i + 1 for i, entry in enumerate(log) if whole_number(entry, "snapshot-id", -1) not in left), default=0
        )
        out = with_values(out, snapshot_log=log[cut:])
    return out


def _number(properties: Mapping[str, Any], name: str, default: int) -> int:
    try:
        return int(properties.get(name, default))
    except (TypeError, ValueError):
        raise FormatError(
            f"the table property {name} must be a whole number, found {properties[name]!r}",
            field=name,
            code="metadata-invalid",
        ) from None
