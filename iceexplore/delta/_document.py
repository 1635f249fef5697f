"""The metadata document of an Iceberg table, made from a Delta log.

Each version of the Delta table becomes a snapshot whose id and sequence number are the version. If no commit has
changed files since the newest tree that the log names, the snapshot's root is the root manifest of that tree.
Otherwise its root is the commit's own file, from which the reader composes a root. Schemas get their field ids from
the column mapping; partition columns become a spec of identity fields with ids from 1000 (RFC
``iceberg-v4-metadata.md``, "Partition Specs").
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from iceexplore.delta._actions import has_scheme, whole_number
from iceexplore.delta._log import FOLDER, Commit, LogFiles, Tree, commit_name, read_commit
from iceexplore.delta._schema import DeltaSchema, delta_schema
from iceexplore.delta._summary import Totals
from iceexplore.errors import FormatError, IceexploreError, MetadataNotFoundError, Problems
from iceexplore.storage import Storage, in_order, progress

__all__ = ["CURRENT_SPECS", "DELTA_LOG", "table_document"]

#: The property that marks the document as made from a Delta table; its value is the folder of the log.
DELTA_LOG = "iceexplore.delta-log"
#: The property with the default partition specs, as ``version=spec``: ``0=0 17=1`` if it changed in version 17.
CURRENT_SPECS = "iceexplore.delta-specs"
_FEATURES = ("adaptiveMetadata", "adaptiveMetadata-preview")
_FIRST_PARTITION_FIELD = 1000
#: If there are more commits than this, reading them shows a progress bar.
_MANY = 200


def table_document(storage: Storage, location: str, problems: Problems) -> dict[str, Any]:
    """Read a table's log and return it as table metadata of format version 4.

    Parameters
    ----------
    location
        The table's location.

    Raises
    ------
    MetadataNotFoundError
        The log has no commit, or the table has no tree: it lacks the feature ``adaptiveMetadata``.
    FormatError
        No commit describes the table, or its schema is malformed.
    IceexploreError
        The log cannot be listed.
    """
    files = LogFiles.of(storage, f"{location}/{FOLDER}")
    if not files.commits:
        raise MetadataNotFoundError(
            f"no table in {location}: this is a Delta Lake table, but its {FOLDER}/ has no commit (<20 digits>.json)"
        )
    _check_feature(storage, location, files)
    return _Builder(storage, location, files, problems).document()


def _check_feature(storage: Storage, location: str, files: LogFiles) -> None:
    """Raise an error unless the newest protocol action lists the feature; read the log back only to that action."""
    places = sorted([*files.commits.items(), *files.checkpoints.items()], reverse=True)
    for _, place in places:
        try:
            commit = read_commit(storage, place)
        except IceexploreError:
            continue
        protocol = commit.get("protocol")
        if not protocol and commit.tree is not None:
            protocol = next((body for kind, body in commit.tree.about if kind == "protocol"), {})
        if protocol:
            features = protocol.get("readerFeatures")
            if not isinstance(features, list) or not any(name in features for name in _FEATURES):
                raise no_tree(location)
            return
    raise no_tree(location)


def no_tree(location: str) -> MetadataNotFoundError:
    """Return the error for a Delta table that has no tree."""
    return MetadataNotFoundError(
        f"no Iceberg table in {location}: this is a Delta Lake table (it has {FOLDER}/) without the table feature "
        "adaptiveMetadata, so it has no V4 tree that could be shown. If Delta writes Iceberg metadata for it, too "
        "(UniForm), open that by its metadata file."
    )


class _Builder:
    """Folds the commits, oldest first, into one document."""

    def __init__(self, storage: Storage, location: str, files: LogFiles, problems: Problems) -> None:
        self.storage = storage
        self.location = location
        self.files = files
        self.problems = problems
        self.schemas: list[dict[str, Any]] = []
        self.texts: list[object] = []
        self.specs: list[list[dict[str, Any]]] = []
        self.spec_since: list[tuple[int, int]] = []
        self.about: dict[str, Any] = {}
        self.schema: DeltaSchema | None = None
        self.last_id = 0
        self.schema_id = self.spec_id = 0
        self.high_water: int | None = None
        self.tree: Tree | None = None
        #: The last version that changed files.
        self.changed = -1

    def document(self) -> dict[str, Any]:
        self._begin()
        commits = list(self._commits())
        first = self._first(commits)
        totals = Totals(known=bool(commits) and commits[0].version == 0)
        snapshots: list[dict[str, Any]] = []
        for commit in commits:
            self._fold(commit)
            before = self.high_water
            self._row_ids(commit.about)
            summary = totals.summary(commit)
            tree = self._tree(commit)
            if commit.version >= first and self.schema is not None:
                snapshots.append(self._snapshot(commit, tree, summary, before))
        if self.schema is None:
            raise FormatError(f"no commit in {FOLDER} has a readable metaData action", location=self.location)
        for older, newer in itertools.pairwise(snapshots):
            newer["parent-snapshot-id"] = older["snapshot-id"]
        return self._document(snapshots, commits)

    def _begin(self) -> None:
        """Start from the schema and properties in the newest standalone checkpoint before the first commit, if any."""
        before = [v for v in self.files.checkpoints if v < min(self.files.commits)]
        if before and min(self.files.commits) > 0:
            place = self.files.checkpoints[max(before)]
            try:
                commit = read_commit(self.storage, place)
            except IceexploreError as error:
                self.problems.add_error(error, place)
                return
            self._fold(commit)
            self._row_ids(commit.about)

    def _commits(self) -> Iterator[Commit]:
        """Yield the commits that can be read, in the order of their versions; others become problems."""

        def read(location: str) -> Commit | IceexploreError:
            try:
                return read_commit(self.storage, location)
            except IceexploreError as error:
                return error

        places = [self.files.commits[v] for v in sorted(self.files.commits)]
        found = in_order(read, places, width=self.storage.readers, weigh=lambda _: 1 << 16, name="iceexplore-delta-log")
        with progress(len(places) if len(places) > _MANY else 0, "commits") as step:
            for place, made in zip(places, found, strict=True):
                if isinstance(made, Commit):
                    yield made
                else:
                    self.problems.add_error(made, place)
                step()

    def _tree(self, commit: Commit) -> Tree | None:
        """Return the tree that describes this commit's version exactly; None if files have changed since that tree."""
        if commit.files:
            self.changed = commit.version
        if commit.tree is not None:
            self.tree = commit.tree
        return self.tree if self.tree is not None and self.tree.version >= self.changed else None

    def _first(self, commits: list[Commit]) -> int:
        """Return the first version whose state can be built: from a tree, or from all commits since version 0."""
        have = {commit.version for commit in commits} | self.files.checkpoints.keys()
        if 0 in have:
            return 0
        starts = [c.version for c in commits if c.tree is not None and c.tree.version + 1 >= min(have)]
        return min([*starts, *self.files.checkpoints], default=max(have, default=0) + 1)

    def _fold(self, commit: Commit) -> None:
        about = commit.get("metaData")
        if not about and self.schema is None and commit.tree is not None:
            # The commit with the first metaData action was cleaned up: the checkpoint has a copy of the action.
            about = next((body for kind, body in commit.tree.about if kind == "metaData"), {})
            self._row_ids(commit.tree.about)
        if not about:
            return
        settings = about.get("configuration")
        settings = settings if isinstance(settings, dict) else {}
        stated = settings.get("delta.columnMapping.maxColumnId")
        if isinstance(stated, str) and stated.isascii() and stated.isdecimal() and len(stated) < 11:
            self.last_id = max(self.last_id, int(stated))
        try:
            schema = delta_schema(about.get("schemaString"), self.last_id, commit.location)
        except IceexploreError as error:
            self.problems.add_error(error, commit.location)
            return
        self.about, self.schema, self.last_id = about, schema, schema.last_id
        if schema.fields not in self.texts:
            self.texts.append(schema.fields)
        self.schema_id = self.texts.index(schema.fields)
        spec = self._spec(about, schema, commit)
        if spec not in self.specs:
            self.specs.append(spec)
        self.spec_id = self.specs.index(spec)
        if not self.spec_since or self.spec_since[-1][1] != self.spec_id:
            self.spec_since.append((commit.version, self.spec_id))

    def _spec(self, about: dict[str, Any], schema: DeltaSchema, commit: Commit) -> list[dict[str, Any]]:
        columns = about.get("partitionColumns")
        out = []
        for i, name in enumerate(columns if isinstance(columns, list) else []):
            source = schema.columns.get(name) if isinstance(name, str) else None
            if source is None:
                error = FormatError(
                    f"the partition column {name!r} is not in the schema",
                    location=commit.location,
                    field="metaData.partitionColumns",
                )
                self.problems.add_error(error, commit.location)
                continue
            field_id = _FIRST_PARTITION_FIELD + i
            out.append({"source-id": source[0], "field-id": field_id, "name": name, "transform": "identity"})
        return out

    def _row_ids(self, about: tuple[tuple[str, dict[str, Any]], ...]) -> None:
        for kind, body in about:
            if kind != "domainMetadata" or body.get("domain") != "delta.rowTracking":
                continue
            try:
                settings = json.loads(str(body.get("configuration")))
            except (ValueError, RecursionError):
                continue
            mark = whole_number(settings.get("rowIdHighWaterMark")) if isinstance(settings, dict) else None
            self.high_water = self.high_water if mark is None else mark

    def _snapshot(
        self, commit: Commit, tree: Tree | None, summary: dict[str, str], before: int | None
    ) -> dict[str, Any]:
        version = commit.version
        first_row = 0 if before is None else before + 1
        next_row = 0 if self.high_water is None else self.high_water + 1
        return {
            "snapshot-id": version,
            "sequence-number": version,
            "timestamp-ms": _time_of(commit),
            "manifest-list": self._absolute(f"{FOLDER}/{commit_name(version)}" if tree is None else tree.location),
            "summary": summary,
            "schema-id": self.schema_id,
            "first-row-id": first_row,
            "added-rows": max(0, next_row - first_row),
        }

    def _absolute(self, location: str) -> str:
        return location if location.startswith("/") or has_scheme(location) else f"{self.location}/{location}"

    def _document(self, snapshots: list[dict[str, Any]], commits: list[Commit]) -> dict[str, Any]:
        assert self.schema is not None
        settings = self.about.get("configuration")
        text = {k: v for k, v in settings.items() if isinstance(v, str)} if isinstance(settings, dict) else {}
        if isinstance(self.about.get("description"), str):
            text["comment"] = self.about["description"]
        text["schema.name-mapping.default"] = json.dumps(self.schema.mapping)
        text[DELTA_LOG] = f"{self.location}/{FOLDER}"
        text[CURRENT_SPECS] = " ".join(f"{version}={spec}" for version, spec in self.spec_since)
        newest = snapshots[-1] if snapshots else None
        times = [item["timestamp-ms"] for item in snapshots] or [_time_of(commits[-1])]
        document: dict[str, Any] = {
            "format-version": 4,
            "table-uuid": str(self.about.get("id") or ""),
            "location": self.location,
            "last-sequence-number": commits[-1].version,
            "last-updated-ms": max(times),
            "last-column-id": self.last_id,
            "schemas": [{"type": "struct", "schema-id": i, "fields": f} for i, f in enumerate(self.texts)],
            "current-schema-id": self.schema_id,
            "partition-specs": [{"spec-id": i, "fields": fields} for i, fields in enumerate(self.specs)],
            "default-spec-id": self.spec_id,
            "last-partition-id": _FIRST_PARTITION_FIELD - 1 + max(map(len, self.specs), default=0),
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": text,
            "next-row-id": 0 if self.high_water is None else self.high_water + 1,
            "snapshots": snapshots,
            "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots],
            "metadata-log": [],
        }
        if newest is not None:
            document["current-snapshot-id"] = newest["snapshot-id"]
            document["refs"] = {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}}
        return document


def _time_of(commit: Commit) -> int:
    """Return a commit's time in milliseconds: its in-commit timestamp, which is monotonic, else the writer's clock."""
    info = commit.get("commitInfo")
    return whole_number(info.get("inCommitTimestamp")) or whole_number(info.get("timestamp")) or 0
