"""Find dangling deletes, as Spark's ``RemoveDanglingDeletesSparkAction`` does (``remove-dangling-deletes``)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.doctor.maintenance._size_based import Longs, Mask
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, bool_array, whole
from iceexplore.metadata import TableMetadata
from iceexplore.planning import DeleteFiles, FileTasks, live_deletes, paired_partition_codes

__all__ = ["dangling", "dropped_by_commit", "removes_dangling"]

_NEVER = np.iinfo(np.int64).max


def removes_dangling(metadata: TableMetadata) -> bool:
    """Return whether Spark looks for dangling deletes, which it does not in a table that was never partitioned.

    In such a table, every commit that removes data files drops the delete files that are older than all data files.
    """
    spec = metadata.spec()
    return len(metadata.partition_specs) > 1 or spec is None or not spec.is_unpartitioned


def dangling(metadata: TableMetadata, found: DeleteFiles, data: EntryBatch, sequence: Longs) -> Mask:
    """Return a mask of the deletes that apply to no data file any more.

    These deletes are:

    - those of a partition without data files;
    - position deletes whose sequence number is lower than those of all data files of their partition;
    - equality deletes whose sequence number is not higher than that of any data file of their partition;
    - deletion vectors of a data file that is not live.

    Equality deletes of an unpartitioned spec are global: they apply to data files of all specs. As in Spark, they are
    nevertheless compared with data files of their own spec only.

    Parameters
    ----------
    found
        The deletes.
    data
        The live data files with their partition tuples.
    sequence
        The data sequence number of each of these data files.
    """
    files, deletes = paired_partition_codes(metadata, data, found.batch)
    size = max(int(files.max(initial=-1)), int(deletes.max(initial=-1))) + 1
    # The last item is for deletes whose spec no data file has. It stays `_NEVER`, so that they all count as dangling.
    oldest = np.full(size + 1, _NEVER, dtype=np.int64)
    there = files >= 0
    np.minimum.at(oldest, files[there], sequence[there])
    least = oldest[np.where(deletes < 0, size, deletes)]
    late = np.where(found.equality, found.sequence <= least, found.sequence < least)
    out: Mask = late | (found.vector & ~bool_array(pc.is_in(found.referenced, whole(data.entries["location"]))))
    return out


def dropped_by_commit(state: TableState, found: DeleteFiles, files: FileTasks, gone: Mask, names: AnyArray) -> Mask:
    """Return a mask of the deletes that a commit drops because they are too old to apply to any remaining data file.

    Every commit that removes data files also drops such deletes (Java: ``MergingSnapshotProducer.apply``,
    ``ManifestFilterManager.dropDeleteFilesOlderThan``). A delete is too old if its data sequence number is lower than a
    limit: the lowest data sequence number of the remaining data files, and at most the table's last sequence number.
    Deletes with the sequence number 0 are kept.

    To find the limit, the commit does not read all data manifests. It rewrites those that list a removed data file, and
    uses the sequence numbers of their remaining entries. For the other data manifests, it uses ``min_sequence_number``
    from the manifest list. Data files that the commit adds do not count.

    If a deletion vector applies to a removed data file, the commit removes this vector, too. Then Java rewrites only
    the delete manifests that list removed vectors (``ManifestFilterManager.canTrustManifestReferences``). Deletes in
    other delete manifests are kept, even if they are too old.

    Parameters
    ----------
    found
        The live deletes of the snapshot.
    files
        The live data files of the snapshot.
    gone
        A mask of the data files in ``files`` that the commit removes.
    names
        The locations of the data files that the commit removes.
    """
    root = state.root()
    oldest = state.metadata.last_sequence_number
    if root is None or not gone.any():
        return np.zeros(len(found), dtype=np.bool_)
    rewritten = np.unique(np.asarray(pc.fill_null(files.root_row, -1)).astype(np.int64)[gone])
    kind = np.asarray(pc.equal(root.entries["content_type"], int(ContentType.DATA_MANIFEST)))
    kind[rewritten[rewritten >= 0]] = False
    listed = pc.struct_field(whole(root.entries["manifest_stats"]), "min_sequence_number")
    numbers = np.asarray(pc.fill_null(listed, 0)).astype(np.int64)[kind]
    sequence = np.asarray(pc.fill_null(whole(files.files.entries["sequence_number"]), 0)).astype(np.int64)
    stays = ~gone & np.isin(np.asarray(pc.fill_null(files.root_row, -1)), rewritten)
    least = min(oldest, int(numbers.min(initial=_NEVER)), int(sequence[stays].min(initial=_NEVER)))
    older: Mask = (found.sequence > 0) & (found.sequence < least)
    if not older.any() or not (found.vector & bool_array(pc.is_in(found.referenced, names))).any():
        return older
    beside = []
    for row in live_manifests(root, {int(ContentType.DELETE_MANIFEST)}):
        held = live_deletes(state, manifests=[row])
        if (held.vector & bool_array(pc.is_in(held.referenced, names))).any():
            beside.append(held.batch.entries["location"])
    older &= bool_array(pc.is_in(found.batch.entries["location"], pa.chunked_array(beside, pa.string())))
    return older
