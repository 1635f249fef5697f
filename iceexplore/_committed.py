"""What a simulation and a lab have in common: a Table with commits, each a line or two into `iceexplore.commits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Literal

from iceexplore import commits, graph
from iceexplore.commits import Committer, Cost, LayoutOptions, Saved
from iceexplore.errors import OptionError, known_arguments, text_of, texts_of, version_of, whole_numbers_of
from iceexplore.metadata import Snapshot
from iceexplore.storage import WriteLog
from iceexplore.table import Table

__all__ = ["CommittedTable"]

#: What `commits.set_ref` takes besides a ref's retention.
_NO_RETENTION = ("document", "name", "snapshot_id", "type", "timestamp_ms")
_SCHEMA_PINS = ("schema", "current-schema-id", "last-column-id")
_SPEC_PINS = (*_SCHEMA_PINS, "partition-spec", "default-spec-id", "last-partition-id")


class CommittedTable(Table):
    """A table of its present state, which commits move on; what `table` and `at` return stays what it is."""

    def __init__(self, sandbox: Committer) -> None:
        super().__init__(sandbox.state)
        self._sandbox: Committer = sandbox

    @property
    def table(self) -> Table:
        """The present state as a Table that later commits do not move."""
        return Table(self._state)

    @property
    def options(self) -> LayoutOptions:
        """How new metadata is laid out."""
        return self._sandbox.options

    def relayout(self, **layout: Any) -> LayoutOptions:
        """Change layout options from the next commit on; those not named stay. No commit, and no rewriting.

        Raises
        ------
        OptionError
            An unknown option, or a value that makes no sense.
        """
        self._sandbox.options = self.options.but(**layout)
        return self.options

    @property
    def writes(self) -> WriteLog:
        """Every file written, by this writer and its forks."""
        return self._sandbox.storage.writes

    def refresh(self) -> Table:
        """Go on from the newest commit of any writer; returns this table, moved on."""
        self._state = self._sandbox.refresh()
        return self

    def cost(self) -> Cost:
        """What the commits so far wrote and read, attempt by attempt, and what a planner now reads."""
        return commits.cost_of(self._sandbox)

    def save(
        self,
        path: str | PathLike[str],
        *,
        data: Literal["refer", "copy", "none"] = "copy",
        location: str | None = None,
    ) -> Saved:
        """Write the table as it is now into a new folder, whole or not at all; `iceexplore.open` opens it anywhere.

        See `iceexplore.commits.save`: ``data`` says what becomes of the table's own data files (by default they are
        copied, so that rows can be read wherever the folder goes; ``refer`` leaves them where they are, and to read
        their rows needs ``iceexplore.open(path, allow=...)``), ``location`` where the written table says that it is
        (by default ``path``, so that engines on this machine can read it).
        """
        return commits.save(self._state, path, data=data, location=location)

    # Commits of files that keep the rows ------------------------------------------------------------------------------

    def rewrite_manifests(self, manifests: Any = None, *, ref: str = "main") -> Snapshot | None:
        """Rewrite manifests without changing the data: those named, or what the layout thinks worth it.

        Returns None, without a commit, if the table has no manifests.
        """
        return self._files_if_any(lambda w: commits.rewrite_manifests(w.base, w, manifests), ref)

    def rewrite_position_deletes(self, paths: Any = None, *, ref: str = "main") -> Snapshot | None:
        """Merge position delete files (version 2), or turn them into deletion vectors (from version 3 on).

        Positions in data files that are gone are dropped. Returns None, without a commit, if there is nothing to
        merge, drop or turn.

        Raises
        ------
        RuleError
            ``deletes-need-v2``: the table has version 1.
        """
        return self._files_if_any(lambda w: commits.rewrite_position_deletes(w.base, w, paths), ref)

    def cherry_pick(self, snapshot: Any) -> Snapshot:
        """Apply the changes of a snapshot (id, ref) that is not in ``main``; of the current one's child: go there.

        Raises
        ------
        RuleError
            ``cherry-pick``: it cannot be picked.
        """
        found = self._resolve(snapshot).snapshot
        assert found is not None
        picked = found.snapshot_id
        if commits.cherry_pick_summary(self._state.opened.document, snapshot_id=picked) is not None:
            return self._files(lambda w: commits.cherry_pick(w.base, w, picked), "main")
        self._document(
            lambda d, ms: commits.set_current_snapshot(d, snapshot_id=picked, timestamp_ms=ms), "cherry_pick"
        )
        return found

    # Commits of metadata alone ----------------------------------------------------------------------------------------

    def expire_snapshots(
        self, ids: Iterable[int] | None = None, *, older_than: object = None, retain_last: int | None = None
    ) -> commits.Expired:
        """Expire snapshots; no file is removed (`retained` shows what could be).

        The default age is five days, so that ``retain_last`` alone expires nothing of a young table: it is how many
        stay at least. ``older_than=datetime.now()`` lets all others go.

        Parameters
        ----------
        ids
            Snapshots that go whatever their age.
        older_than
            A datetime, ISO text or milliseconds; by default the table's ``history.expire.max-snapshot-age-ms``.
        retain_last
            So many snapshots of each branch stay, however old.

        Returns
        -------
        Expired
            The ids that went: a tuple that prints which snapshots stayed and by which rule (``.kept``).

        Raises
        ------
        RuleError
            ``expire-referenced``, ``expire-gc``.
        """
        wanted = None if ids is None else whole_numbers_of("ids", ids)
        before = None if older_than is None else graph.to_ms(older_than)
        before = 0 if before is None and wanted is not None else before
        expired = commits.Expired()

        def expire(document: Mapping[str, Any], ms: int) -> dict[str, Any]:
            nonlocal expired  # of the last attempt, which is the one that was committed
            document, expired = commits.expire_snapshots(
                document, ids=wanted, older_than_ms=before, retain_last=retain_last, now_ms=ms
            )
            return document

        self._document(expire, "expire_snapshots")
        return expired

    def rollback(self, snapshot: Any = None, *, timestamp: object = None) -> Snapshot | None:
        """Make an ancestor current again: this snapshot (id, ref), or the newest older than a time.

        ``rollback-ancestor``.
        """
        if (snapshot is None) == (timestamp is None):
            raise OptionError("rollback takes one of snapshot and timestamp: where to go back to")
        before = None if timestamp is None else graph.to_ms(timestamp)
        to = None if snapshot is None else self._snapshot_id(snapshot)
        return self._document(
            lambda d, ms: commits.rollback(d, snapshot_id=to, older_than_ms=before, timestamp_ms=ms), "rollback"
        )

    def branch(self, name: str, at: Any = None, **retention: int) -> Snapshot | None:
        """Make or move a branch to a snapshot (id, ref; by default the present one).

        Parameters
        ----------
        retention
            ``min_snapshots_to_keep``, ``max_snapshot_age_ms``, ``max_ref_age_ms``.
        """
        return self._set_ref(name, "branch", at, retention)

    def tag(self, name: str, at: Any = None, *, max_ref_age_ms: int | None = None) -> Snapshot | None:
        """Make or move a tag to a snapshot (id, ref; by default the present one)."""
        return self._set_ref(name, "tag", at, {} if max_ref_age_ms is None else {"max_ref_age_ms": max_ref_age_ms})

    def remove_ref(self, name: str) -> Snapshot | None:
        """Remove a branch or tag."""
        return self._document(lambda d, ms: commits.remove_ref(d, name=name), "remove_ref")

    def fast_forward(self, name: str, to: str) -> Snapshot | None:
        """Move a branch to where another ref is, of which it must be an ancestor. ``fast-forward-ancestor``."""
        return self._document(lambda d, ms: commits.fast_forward(d, name=name, to=to, timestamp_ms=ms), "fast_forward")

    def set_properties(
        self, properties: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> Snapshot | None:
        """Set and remove table properties. ``reserved-property``."""
        gone = texts_of("remove", remove, "['owner']")
        return self._document(lambda d, ms: commits.set_properties(d, set=properties, remove=gone), "set_properties")

    def evolve_schema(self, **changes: Any) -> Snapshot | None:
        """Evolve the schema: ``add``, ``drop``, ``rename``, ``update``, ``move``, ``require``, ``doc``, defaults.

        See `iceexplore.commits.evolve_schema`. What the spec forbids is refused with its rule's name.
        """
        known_arguments("evolve_schema", changes, commits.evolve_schema, ("document",))
        return self._document(lambda d, ms: commits.evolve_schema(d, **changes), "evolve_schema", _SCHEMA_PINS)

    def evolve_spec(self, **changes: Any) -> Snapshot | None:
        """Evolve the partition spec: ``add=["day(ts)"]``, ``remove``, ``rename`` (`iceexplore.commits.evolve_spec`)."""
        known_arguments("evolve_spec", changes, commits.evolve_spec, ("document",))
        return self._document(lambda d, ms: commits.evolve_spec(d, **changes), "evolve_spec", _SPEC_PINS)

    def set_sort_order(self, *fields: str) -> Snapshot | None:
        """Another default sort order: ``"ts desc"``, ``"bucket(16, id)"``; without fields unsorted."""
        return self._document(lambda d, ms: commits.set_sort_order(d, fields=fields), "set_sort_order", _SCHEMA_PINS)

    def upgrade(self, format_version: int, **layout: Any) -> Snapshot | None:
        """Upgrade the table, in a metadata file of its own; from then on commits have the new layout.

        Without this call, the first commit of a simulation with a higher ``format_version`` upgrades in its own
        metadata file.

        Raises
        ------
        RuleError
            ``format-version-rises``: the table has a higher one.
        OptionError
            It is none of 1 to 4, or an option makes no sense.
        """
        format_version = version_of(format_version)
        old = self._sandbox.options
        if format_version < self.format_version:
            commits.upgrade(self._state.opened.document, format_version)
        self._sandbox.options = commits.options_for(self._state, format_version, layout)
        try:
            return self._document(self._upgraded(), "upgrade")
        except BaseException:
            self._sandbox.options = old
            raise

    # ------------------------------------------------------------------------------------------------------------------

    def _upgraded(self) -> commits.DocumentChange | None:
        """What an upgrade changes besides."""
        return None

    def _files(self, make: commits.MakeChange, ref: str, **how: Any) -> Snapshot:
        made = self._sandbox.commit(make, ref=text_of("ref", ref, "the name of a branch"), **how)
        self._state = self._sandbox.state
        assert made is not None
        return made

    def _files_if_any(self, make: commits.MakeChange, ref: str) -> Snapshot | None:
        """Commit a change of files, or return None if there is nothing to change."""
        try:
            return self._files(make, ref)
        except commits.NothingToDo:
            self._state = self._sandbox.state
            return None

    def _document(
        self, change: commits.DocumentChange | None, what: str, pins: tuple[str, ...] = ()
    ) -> Snapshot | None:
        found = self._sandbox.commit(document_change=change, what=what, pins=pins)
        self._state = self._sandbox.state
        return found

    def _snapshot_id(self, of: Any) -> int:
        if isinstance(of, int):
            return of  # perhaps of another writer, and not known here yet
        found = self._resolve(of).snapshot
        if found is None:
            raise OptionError(f"{of!r} has no snapshot")
        return found.snapshot_id

    def _set_ref(
        self, name: str, kind: Literal["branch", "tag"], at: Any, retention: Mapping[str, int]
    ) -> Snapshot | None:
        known_arguments(kind, retention, commits.set_ref, _NO_RETENTION)
        snapshot = self._state.snapshot if at is None else self._resolve(at).snapshot
        if snapshot is None:
            raise OptionError(f"{kind} {name!r}: the table has no snapshot yet, and a ref names one")
        made = snapshot.snapshot_id
        self._document(
            lambda d, ms: commits.set_ref(d, name=name, snapshot_id=made, type=kind, timestamp_ms=ms, **retention), kind
        )
        return snapshot
