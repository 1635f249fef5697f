"""Plan the removal of schemas and partition specs that no snapshot and no manifest uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Sandbox, remove_schemas_and_specs
from iceexplore.doctor.maintenance._files import strict
from iceexplore.doctor.maintenance._plan import DEFAULT, MaintenanceCost, Plan, T, Threshold, Wrap, spark_call
from iceexplore.doctor.maintenance._times import spark_timestamp
from iceexplore.graph import TableState, amount, to_frame
from iceexplore.manifests import Manifest, live
from iceexplore.metadata import Snapshot, TableMetadata, in_order
from iceexplore.render import CardTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["UnusedPlan", "plan_unused", "unused_schemas_and_specs"]

_SHOWN = 20


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UnusedPlan(Plan[T]):
    """The schemas and partition specs that ``clean_expired_metadata`` would remove from the metadata file now.

    Attributes
    ----------
    schemas
        The ids of schemas that are neither current nor the schema of a snapshot.
    specs
        The ids of partition specs that are neither the default nor the spec of a manifest of any snapshot.
    """

    procedure = "expire_snapshots"
    title = "Remove unused schemas and partition specs"

    schemas: tuple[int, ...] = ()
    specs: tuple[int, ...] = ()

    @property
    def nothing(self) -> bool:
        """True if every schema and every spec is used."""
        return not self.schemas and not self.specs

    @property
    def text(self) -> str:
        """A sentence about what would be removed."""
        if self.nothing:
            return "every schema and partition spec is used"
        parts = [amount(len(self.schemas), "schema")] if self.schemas else []
        parts += [amount(len(self.specs), "partition spec")] if self.specs else []
        return f"{' and '.join(parts)} unused"

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per schema and per partition spec of the table, used or not.

        The columns are ``kind``, ``id``, ``unused`` (whether it would be removed), and ``fields`` (the names of the
        schema's top-level columns or of the spec's partition fields).
        """
        metadata = self.state.metadata
        schemas, specs = metadata.schemas, metadata.partition_specs
        ids = [*(s.schema_id for s in schemas), *(s.spec_id for s in specs)]
        unused = [*(s.schema_id in self.schemas for s in schemas), *(s.spec_id in self.specs for s in specs)]
        kinds = ["schema"] * len(schemas) + ["partition spec"] * len(specs)
        fields = [", ".join(f.name for f in s.fields) for s in schemas]
        fields += [", ".join(f.name for f in s.fields) for s in specs]
        columns: list[AnyArray] = [pa.array(kinds), pa.array(ids, pa.int32()), pa.array(unused), pa.array(fields)]
        return to_frame(pa.table(columns, ["kind", "id", "unused", "fields"]))

    def _commit(self, sandbox: Sandbox) -> None:
        sandbox.commit(
            document_change=lambda document, _: remove_schemas_and_specs(
                document, schemas=self.schemas, specs=self.specs
            ),
            what="clean_expired_metadata",
        )

    def _details(self) -> dict[str, Any]:
        return {"schemas": list(self.schemas), "specs": list(self.specs)}

    def _tables(self) -> tuple[CardTable, ...]:
        metadata = self.state.metadata
        columns = {s.schema_id: ", ".join(f.name for f in s.fields) for s in metadata.schemas}
        fields = {s.spec_id: ", ".join(f.name for f in s.fields) for s in metadata.partition_specs}
        return (
            CardTable("Unused schemas", ("id", "columns"), tuple((str(i), columns[i]) for i in self.schemas[:_SHOWN])),
            CardTable("Unused specs", ("id", "fields"), tuple((str(i), fields[i]) for i in self.specs[:_SHOWN])),
        )


def plan_unused(state: TableState, wrap: Wrap[T]) -> UnusedPlan[T]:
    """Plan the removal of schemas and specs that no snapshot uses, without expiring a snapshot.

    Raises
    ------
    FormatError, FileMissingError
        A manifest list or V4 leaf manifest is damaged or missing, so that the specs in use are unknown.
    """
    metadata = state.metadata
    schemas, specs, notes = unused_schemas_and_specs(state, metadata.snapshots)
    sizes = [s.root_location for s in metadata.snapshots if s.root_location]
    return UnusedPlan(
        state=state,
        wrap=wrap,
        schemas=schemas,
        specs=specs,
        reasons=(Threshold("clean_expired_metadata", "false", DEFAULT),),
        cost=MaintenanceCost(files_read=len(set(sizes)) if len(metadata.partition_specs) > 1 else 0, files_written=1),
        # No snapshot is older than 1970: the call removes no snapshots.
        calls=(spark_call(state, "expire_snapshots", older_than=spark_timestamp(0), clean_expired_metadata="true"),),
        notes=notes,
    )


def unused_schemas_and_specs(
    state: TableState, snapshots: Iterable[Snapshot]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Return the ids of the schemas and of the specs that none of these snapshots uses, and notes about the result.

    The current schema and the default spec count as used. Manifest lists are read only if there is more than one spec.
    They are read from the newest snapshot to the oldest, until every spec is known to be used. If the spec id of a
    manifest is not recorded, all specs count as used, and the only note explains this. Otherwise, a note warns of each
    partition field of a used spec whose source column is only in unused schemas.
    """
    metadata, snapshots = state.metadata, list(snapshots)
    used = {metadata.current_schema_id, *(s.schema_id for s in snapshots)}
    schemas = tuple(dict.fromkeys(s.schema_id for s in metadata.schemas if s.schema_id not in used))
    known = tuple(dict.fromkeys(s.spec_id for s in metadata.partition_specs))
    if len(known) < 2:
        return schemas, (), tuple(_unbound(metadata, schemas, known))
    mine: set[int | None] = {metadata.default_spec_id}
    reading = strict(state)
    for snapshot in reversed(in_order(snapshots)):
        if mine.issuperset(known):
            break
        listed = reading.reader.listed_specs(snapshot)
        root = reading.root(snapshot) if listed is None else None
        mine |= listed or (_specs_of(reading, root) if root is not None else set())
    if None in mine:
        return schemas, (), ("A manifest does not record its partition spec: all specs count as used.",)
    left = tuple(i for i in known if i not in mine)
    return schemas, left, tuple(_unbound(metadata, schemas, [i for i in known if i not in left]))


def _specs_of(state: TableState, root: Manifest) -> set[int | None]:
    """Return the ids of the partition specs that a snapshot uses; None is among them if an id is not recorded.

    These are the specs of the manifests in the manifest list. With a root manifest (V4), they are the specs of the live
    entries for files.
    """
    if not root.dialect.has_root_manifest:
        return set(build.to_pylist(pc.unique(root.entries["partition_spec_id"])))
    found: set[int | None] = set()
    for leaf in state.reader.leaves(root):
        found |= set(build.to_pylist(pc.unique(leaf.entries.filter(live(leaf.entries))["partition_spec_id"])))
    return found


def _unbound(metadata: TableMetadata, schemas: Iterable[int], specs: Collection[int]) -> Iterator[str]:
    """Yield a note for each partition field of a used spec whose source column is only in unused schemas.

    Engines may need these schemas to read manifests of the spec.

    Parameters
    ----------
    schemas
        The ids of the unused schemas.
    specs
        The ids of the used partition specs.
    """
    gone = set(schemas)
    left = {i for s in metadata.schemas if s.schema_id not in gone for i in s.by_id()}
    lost = {i for s in metadata.schemas if s.schema_id in gone for i in s.by_id()} - left
    for spec in metadata.partition_specs:
        if spec.spec_id in specs:
            for field in spec.fields:
                if lost & set(field.source_ids):
                    yield (
                        f"Partition spec {spec.spec_id} is used, but the source column of its field {field.name} is "
                        "only in unused schemas: if these are removed, engines may fail to read old manifests."
                    )
