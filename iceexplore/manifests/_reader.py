"""The reader of a table's manifests: roots, leaves, in parallel, with inheritance; and loose files."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import IceexploreError, Problem, Problems, problem
from iceexplore.manifests._checks import count_problems, length_problems
from iceexplore.manifests._content_entry import Status
from iceexplore.manifests._inherit import Parent, inherit, replace
from iceexplore.manifests._inline import inline_root
from iceexplore.manifests._manifest import Manifest, Meaning
from iceexplore.manifests._source import Part, Source
from iceexplore.metadata import Snapshot, TableMetadata, parse_schema, parse_spec
from iceexplore.storage import progress

__all__ = ["ManifestReader", "open_manifest"]


class ManifestReader:
    """Reads the manifests of one table.

    Parameters
    ----------
    storage
        Where the table's bytes are.
    metadata
        The table's metadata, for specs and the types of columns.
    problems
        Where faults are noted; strict ones raise.
    """

    def __init__(self, storage: Any, metadata: TableMetadata, problems: Problems) -> None:
        self.storage = storage
        self.metadata = metadata
        self.problems = problems
        types = {i: f.type for i, (_, f) in metadata.all_fields().items()}
        self._meaning = Meaning(types, {s.spec_id: s for s in metadata.partition_specs})

    def root(self, snapshot: Snapshot) -> Manifest:
        """The manifest list of a snapshot as a root; a v1 snapshot's inline manifests likewise.

        A file that is missing or damaged gives a manifest without entries, and a `Problem`.

        Raises
        ------
        IceexploreError
            The same, if problems are strict.
        """
        location = snapshot.manifest_list
        if location is None and snapshot.manifests is not None:
            return self._noted(inline_root(self.storage, self.metadata, snapshot))
        if not location:
            where = f"{self.metadata.location}#snapshot {snapshot.snapshot_id}"
            item = problem("metadata-invalid", where, "The snapshot names neither a manifest list nor manifests.")
            return self._noted(Manifest.empty("", (item,), is_root=True))
        source = Source(self.storage, location, kind="manifest-list")
        try:
            part = source.parts({"entries"})["entries"]
        except IceexploreError as error:
            return self._noted(Manifest.empty(location, (_problem_of(error, location),), is_root=True))
        if not part.head.is_root:
            item = problem("file-corrupt", location, "A manifest stands where a manifest list should.")
            return self._noted(Manifest.empty(location, (item,), is_root=True))
        return self._noted(_root_manifest(location, part, snapshot.snapshot_id))

    def leaf(self, root: Manifest, ordinal: int, parts: Iterable[str] = frozenset({"entries"})) -> Manifest:
        """The manifest in one row of a root, its entries after inheritance from that row.

        Parameters
        ----------
        ordinal
            The row in ``root.entries``.
        parts
            Any of ``entries``, ``partition``, ``stats``: what to decode at once. The rest is decoded (and the file
            read again, unless it is small) when asked for.

        Raises
        ------
        IceexploreError
            The file is missing or damaged, and problems are strict.
        """
        return self._noted(self._leaf(root, ordinal, frozenset(parts)))

    def leaves(
        self, root: Manifest, ordinals: Iterable[int] | None = None, parts: Iterable[str] = frozenset({"entries"})
    ) -> Iterator[Manifest]:
        """The manifests of a root in order, a few of them read ahead in threads.

        Closing the generator cancels what has not begun.
        """
        wanted = frozenset(parts)
        order = list(range(len(root))) if ordinals is None else list(ordinals)
        if len(order) < 2:
            yield from (self.leaf(root, o, wanted) for o in order)
            return
        workers = min(4, max(2, os.cpu_count() or 2))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="iceexplore-manifests")
        ahead: deque[Future[Manifest]] = deque()
        try:
            with progress(len(order), "manifests") as step:
                for ordinal in order:
                    ahead.append(pool.submit(self._leaf, root, ordinal, wanted))
                    if len(ahead) > workers:  # memory holds so many, and the one handed out
                        yield self._noted(ahead.popleft().result())
                        step()
                while ahead:
                    yield self._noted(ahead.popleft().result())
                    step()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _noted(self, manifest: Manifest) -> Manifest:
        for item in manifest.problems:
            self.problems.add(item)
        return manifest

    def _leaf(self, root: Manifest, ordinal: int, parts: frozenset[str]) -> Manifest:
        row = root.entries.slice(ordinal, 1).to_pylist()[0]
        location = row["location"]
        if not location:
            where = f"{root.location}#entry {ordinal}"
            return Manifest.empty("", (problem("file-corrupt", where, "The entry has no location."),))
        parent = Parent(
            row["snapshot_id"],
            row["sequence_number"],
            row["partition_spec_id"],
            row["first_row_id"],
            row["content_type"],
        )
        source = Source(self.storage, location, kind="manifest", version=row["file_size_in_bytes"])
        try:
            got = source.parts(parts | {"entries"})
        except IceexploreError as error:
            return Manifest.empty(location, (_problem_of(error, location),))
        part = got["entries"]
        head = part.head
        if head.is_root:
            item = problem("file-corrupt", location, "A manifest list stands where a manifest should.")
            return Manifest.empty(location, (item,))
        problems = list(part.problems)
        problems += length_problems(location, row["file_size_in_bytes"], head.length)
        if head.whole:
            problems += count_problems(location, row["manifest_stats"], part.table)
        return Manifest(
            location,
            inherit(part.table, parent),
            dialect=head.dialect,
            header=head.header,
            length=head.length,
            problems=tuple(problems),
            layout=head.layout,
            load=_loader(source, got),
            meaning=self._meaning,
            spec_id=parent.partition_spec_id,
            report=self.problems,
        )


def open_manifest(storage: Any, location: str) -> Manifest:
    """Read a loose manifest or manifest list; nothing is inherited, types are those of its own header.

    Raises
    ------
    IceexploreError
        The file is missing, refused, or nothing of it can be read.
    """
    info = storage.stat(location)
    source = Source(storage, location, kind="manifest", version=(info.size, info.etag, info.modified_ms))
    part = source.parts({"entries"})["entries"]
    head = part.head
    if head.is_root:
        return _root_manifest(location, part, head.header.number("snapshot-id"))
    entries = part.table
    columns = {"partition_spec_id": pa.repeat(pa.scalar(head.header.spec_id, pa.int32()), len(entries))}
    if head.dialect == "v1":  # read as 0 (spec, "Sequence Number Inheritance")
        columns |= {n: pc.fill_null(entries[n], 0) for n in ("sequence_number", "file_sequence_number")}
    meaning, spec_id = _own_meaning(head.header)
    return Manifest(
        location,
        replace(entries, columns),
        dialect=head.dialect,
        header=head.header,
        length=head.length,
        problems=part.problems,
        layout=head.layout,
        load=_loader(source, {"entries": part}),
        meaning=meaning,
        spec_id=spec_id,
    )


def _own_meaning(header: Any) -> tuple[Meaning, int | None]:
    """Types and spec from a manifest's own header, as far as they can be read."""
    types, specs, spec_id = {}, {}, header.spec_id if header.spec_id is not None else 0
    with contextlib.suppress(IceexploreError):
        types = {i: f.type for i, (_, f) in parse_schema(header.json("schema")).by_id().items()}
    try:
        specs[spec_id] = parse_spec(header.json("partition-spec"), spec_id)  # the fields, or (some) the whole object
    except IceexploreError:
        return Meaning(types, {}), None
    return Meaning(types, specs), spec_id


def _loader(source: Source, got: dict[str, Part]) -> Any:
    def load(name: str) -> Part:
        if name not in got:
            got.update(source.parts({name}))
        return got[name]

    return load


def _root_manifest(location: str, part: Part, snapshot_id: int | None) -> Manifest:
    """A root from a manifest list: ADDED are the manifests that this snapshot added."""
    head = part.head
    if snapshot_id is None:
        status = pa.nulls(len(part.table), pa.int32())
    else:
        ours = pc.fill_null(pc.equal(part.table["snapshot_id"], snapshot_id), False)
        status = pc.if_else(ours, pa.scalar(int(Status.ADDED), pa.int32()), int(Status.EXISTING)).cast(pa.int32())
    return Manifest(
        location,
        replace(part.table, {"status": status}),
        dialect=head.dialect,
        is_root=True,
        header=head.header,
        length=head.length,
        problems=part.problems,
        layout=head.layout,
    )


def _problem_of(error: IceexploreError, where: str) -> Problem:
    return Problems().add_error(error, where)
