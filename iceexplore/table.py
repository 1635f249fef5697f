"""The faces: `open`, `sample` and `Table`. Each method is a line or two into a package below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from iceexplore import graph
from iceexplore._samples import sample_path
from iceexplore._scans import Scans
from iceexplore._sparks import Sparks
from iceexplore.errors import OptionError, Problems

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.commits import Replay, Retained
    from iceexplore.inspect import Inspect
    from iceexplore.metadata import PartitionSpec, Schema, Snapshot, SortOrder, TableMetadata
    from iceexplore.simulation import Simulation
    from iceexplore.storage import ReadLog
    from iceexplore.widgets import Explorer

__all__ = ["Table", "open", "sample"]


def open(  # noqa: A001  (ix.open is the face; the module never needs the built-in)
    source: Any,
    *,
    catalog: Any = None,
    moved: Mapping[str, str | PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Table:
    """Open a table. Reads one JSON file, nothing more.

    Parameters
    ----------
    source
        A table folder, a metadata file, the URI of either (``s3://``, ``gs://``, ``memory://``, … whatever fsspec or
        PyIceberg's FileIO knows), a zip, a PyIceberg ``Table``, or with ``catalog`` a table's identifier.
    catalog
        The name of a PyIceberg catalog, or a catalog object.
    moved
        Where files are now, by the prefix under which the table knows them. Found by itself where it can be.
    version
        Which metadata file: its number, name or location. By default the newest.
    allow
        Further places that may be read, besides the table's own roots: folders, files or whole buckets, such as those
        of files that ``add_files`` put into the table. An `OutsideRootsError` names what to pass.
    properties
        Options of the catalog, or of the storage. ``iceexplore.parallel-reads`` is how many requests to a far store are
        made at once, by default 24; on a local disk, how many threads read manifests.
    strict
        Raise at the first fault instead of showing the rest.

    Raises
    ------
    MetadataNotFoundError
        No table there; the message says what is.
    FormatError
        The metadata file is no table metadata.
    AccessDeniedError, StorageError, CatalogError, OutsideRootsError
        The storage or catalog refused or failed.
    """
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give names and values, as a dictionary")
    state = graph.open_state(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
    )
    return Table(state)


def sample(name: str = "trips") -> Table:
    """Open a table that ships with the package, written by Spark with Iceberg's runtime.

    Raises
    ------
    OptionError
        No sample of that name; those that there are, are listed.
    """
    return Table(graph.open_state(sample_path(name)))


def _metadata_frame(*args: Any, **options: Any) -> Any:
    from iceexplore.on_spark import metadata_frame

    return metadata_frame(*args, **options)


class Table(Scans, Sparks):
    """An Iceberg table as of some state: immutable, and read no further than was asked.

    Made by `iceexplore.open`. In a notebook it shows its card.
    """

    def __init__(self, state: graph.TableState) -> None:
        self._state = state

    def _resolve(self, at: Any) -> graph.TableState:
        return at._state if isinstance(at, Table) else graph.resolve_state(self._state, at)

    # What it is -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> graph.TableState:
        """The immutable state behind this face, for the packages below."""
        return self._state

    @property
    def name(self) -> str:
        """The catalog's identifier, or the last part of the location."""
        return self._state.name

    @property
    def location(self) -> str:
        """The table's location, as written in its metadata."""
        return self._state.metadata.location

    @property
    def metadata(self) -> TableMetadata:
        """The metadata file as a record; ``.raw`` is the JSON as written."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        """The metadata file's location."""
        return self._state.metadata_location

    @property
    def format_version(self) -> int:
        """1 to 4."""
        return self._state.metadata.format_version

    @property
    def schema(self) -> Schema:
        """The schema of the state shown."""
        return self._state.schema

    @property
    def spec(self) -> PartitionSpec | None:
        """The default partition spec."""
        return self._state.metadata.spec()

    @property
    def sort_order(self) -> SortOrder | None:
        """The default sort order."""
        m = self._state.metadata
        return next((o for o in m.sort_orders if o.order_id == m.default_sort_order_id), None)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self._state.metadata.properties

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot shown; None for a table without one."""
        return self._state.snapshot

    @property
    def snapshots(self) -> graph.Records[Snapshot]:
        """Every snapshot in the metadata, oldest first."""
        return graph.snapshot_records(self._state)

    @property
    def refs(self) -> graph.RefRecords:
        """Branches and tags by name."""
        return graph.ref_records(self._state)

    @property
    def problems(self) -> Problems:
        """Every fault met so far; more come to light as more is read."""
        return self._state.problems

    @property
    def reads(self) -> ReadLog:
        """Every read of the storage, with bytes and time."""
        return self._state.storage.reads

    @property
    def moved(self) -> Mapping[str, str]:
        """Where files are now, by the prefix under which the table knows them."""
        return self._state.storage.moved

    # What it is made of ---------------------------------------------------------------------------------------------

    @property
    def inspect(self) -> Inspect:
        """The metadata tables: ``t.inspect.files()`` and its like; ``t.inspect.files(spark=spark)`` on Spark."""
        from iceexplore.inspect import Inspect

        return Inspect(self._state, on_spark=_metadata_frame)

    @overload
    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = ...,
        depth: Literal["snapshots", "manifests", "files"] = ...,
        labels: Literal["short", "full", "counts"] = ...,
        max_nodes: int = ...,
        style: Literal["tree"] = ...,
    ) -> graph.Tree: ...

    @overload
    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = ...,
        style: Literal["seed"],
        names: Mapping[str, str] | None = ...,
    ) -> graph.SeedTree: ...

    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = "current",
        depth: Literal["snapshots", "manifests", "files"] = "manifests",
        labels: Literal["short", "full", "counts"] = "short",
        max_nodes: int = 150,
        style: Literal["tree", "seed"] = "tree",
        names: Mapping[str, str] | None = None,
    ) -> graph.Tree | graph.SeedTree:
        """Metadata files, snapshots and refs, manifest lists, manifests, files. See `iceexplore.graph.build_tree`.

        With ``style="seed"`` as the V4 proposal's figures are drawn (`iceexplore.graph.build_seed_tree`): manifests
        are tables, each layer on one level; ``names`` are short names by location.
        """
        if style == "seed":
            return graph.build_seed_tree(self._state, snapshots=snapshots, names=names)
        if style != "tree":
            raise OptionError(f"style={style!r}: choose 'tree' or 'seed'")
        return graph.build_tree(self._state, snapshots=snapshots, depth=depth, labels=labels, max_nodes=max_nodes)

    def explore(self) -> Explorer:
        """The interactive explorer: tree and details side by side."""
        from iceexplore.widgets import explore

        return explore(self)

    # Travel ---------------------------------------------------------------------------------------------------------

    def at(
        self,
        *,
        snapshot: int | str | None = None,
        timestamp: object = None,
        ref: str | None = None,
        version: int | str | None = None,
    ) -> Table:
        """The table as of then. Exactly one of the arguments.

        Parameters
        ----------
        snapshot
            A snapshot id.
        timestamp
            A datetime, date, ISO text or milliseconds since the epoch; a naive time is UTC. By the snapshot-log.
        ref
            A branch or tag.
        version
            The number of a metadata file.

        Raises
        ------
        SnapshotNotFoundError
            There is none; the nearest are listed.
        OptionError
            None of the arguments, or more than one.
        """
        return Table(graph.travel(self._state, snapshot=snapshot, timestamp=timestamp, ref=ref, version=version))

    def refresh(self) -> Table:
        """The newest state of the table, as a new Table; this one stays what it is.

        Raises
        ------
        TableChangedError
            Another table stands there now.
        """
        return Table(graph.refreshed(self._state))

    def history(self) -> pd.DataFrame:
        """What became current when: a row per change of the current snapshot, with its operation, refs and changes."""
        return graph.history(self._state)

    def diff(self, a: Any, b: Any = None) -> graph.Diff:
        """What changed from ``a`` to ``b``: files, rows, deletes, manifests, schema, spec, properties.

        Each is a snapshot id, a branch or tag, or a Table (also of another table). Without ``b``, from ``a`` to here.
        """
        before = self._resolve(a)
        return graph.diff(before, self._state if b is None else self._resolve(b))

    def simulate(
        self,
        format_version: int | None = None,
        *,
        overlay: str | Path | None = None,
        seed: int | str | None = None,
        **layout: Any,
    ) -> Simulation:
        """A simulation: a Table with commits, whose files go to an overlay. This table is never written.

        Of a time-travelled table the first commit makes the snapshot shown current.

        Parameters
        ----------
        format_version
            By default the table's own. A higher one upgrades with the first commit.
        overlay
            An empty local folder for the simulation's files; by default a temporary one that goes with it.
        seed
            Makes ids, names, made-up files and times repeatable.
        layout
            Options of the layout (`iceexplore.commits.LayoutOptions`): ``dialect``, ``dv_encoding``,
            ``flush_data_files``, ...

        Raises
        ------
        OptionError
            A lower format version, an unknown option, or a folder that cannot be used.
        """
        from iceexplore.simulation import simulate

        return simulate(self._state, format_version, overlay=overlay, seed=seed, layout=layout)

    def replay(self, format_version: int = 4, **how: Any) -> Replay[Simulation]:
        """The table's own history, committed again in another version and layout: before and after, per snapshot.

        ``how`` has ``last``, ``seed``, ``overlay`` and options of the layout. See `iceexplore.commits.replay`.
        """
        from iceexplore import commits
        from iceexplore.simulation import Simulation

        return commits.replay(self._state, format_version, face=Simulation, **how)

    def retained(self, window: int, *, data: bool = False) -> Retained:
        """Metadata that the newest snapshots keep, and what expiring others frees: `iceexplore.commits.retained`."""
        from iceexplore.commits import retained

        return retained(self._state, window, data=data)

    # Sharing --------------------------------------------------------------------------------------------------------

    def bundle(
        self,
        path: str | Path,
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        deletes: bool = False,
        overwrite: bool = False,
    ) -> graph.Bundle:
        """Write the metadata into a zip to mail; `iceexplore.open` opens it. See `iceexplore.graph.write_bundle`."""
        return graph.write_bundle(self._state, path, redact=redact, deletes=deletes, overwrite=overwrite)

    def close(self) -> None:
        """Remove what was extracted for this table (a zip's temporary folder)."""
        self._state.storage.close()

    # How it looks ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return graph.card_text(graph.table_card(self._state))

    def _repr_html_(self) -> str:
        return graph.card_html(graph.table_card(self._state))
