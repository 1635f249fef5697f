"""Check that delete files and deletion vectors can be read, have correct counts, and fit the data files they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.deletes import (
    FILE_PATH_ID,
    POS_ID,
    PuffinFile,
    bare_vector_problem,
    read_position_deletes,
    read_puffin_footer,
)
from iceexplore.errors import IceexploreError
from iceexplore.formats import FileFacts
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.reading import read_vector
from iceexplore.storage import path_only, same_location
from iceexplore.verification._findings import Checked, Place, Role

__all__ = ["Puffins", "check_equality", "check_positions", "check_vector"]


class Puffins:
    """The footers of Puffin files, each read once, since one file may hold many deletion vectors."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._known: dict[str, PuffinFile | IceexploreError] = {}

    def footer(self, place: Place, recorded: int | None, out: Checked) -> PuffinFile | None:
        """Return a footer, or None if it cannot be read. The file's problems are reported once."""
        found = self._known.get(place.location)
        if found is None:
            found = self._known[place.location] = self._read(place, recorded, out)
        return found if isinstance(found, PuffinFile) else None

    def _read(self, place: Place, recorded: int | None, out: Checked) -> PuffinFile | IceexploreError:
        try:
            size = self._state.storage.stat(place.location).size
        except IceexploreError as error:
            out.fail(place, error)
            return error
        if recorded is not None and size is not None and recorded != size:
            code = "file-truncated" if size < recorded else "count-mismatch"
            text = (
                "The Puffin file's size differs from its manifest entry: readers that rely on the entry do not find "
                "the footer."
            )
            out.say(place, code, text, field="file_size_in_bytes", found=size, expected=recorded)
        try:
            footer = read_puffin_footer(self._state.storage, place.location, size)
        except IceexploreError as error:
            if size is None or recorded is None or size >= recorded:
                out.fail(place, error, field="puffin")
            return error
        for item in footer.problems:
            out.add(place, item)
        return footer


def check_vector(state: TableState, place: Place, entry: Mapping[str, Any], puffins: Puffins, out: Checked) -> None:
    """Check a deletion vector: CRC and bitmap of the blob, its cardinality, the Puffin footer, and the data file."""
    named = entry["referenced_file"]
    where = entry["deletion_vector"]
    if not named:
        text = "The deletion vector names no data file, so it applies to none (spec, 143 referenced_data_file)."
        out.say(place, "delete-scope", text, field="referenced_data_file")
    whole = True  # so far, no problem of the enclosing Puffin file is known
    in_puffin = not (state.opened.is_delta and place.location.endswith(".bin"))  # files of Delta Lake have no footer
    if where["inline_content"] is None and entry["location"] and in_puffin:
        bare = bare_vector_problem(place.location, where["offset"] or 0)
        if bare is not None:
            out.add(place, bare)
        else:
            footer = puffins.footer(place, entry["file_size_in_bytes"], out)
            whole = footer is not None
            if footer is not None:
                _check_blob(place, entry, footer, out)
    try:
        bitmap = read_vector(state, entry)
    except IceexploreError as error:
        if whole:  # otherwise a problem of the file itself was reported
            out.fail(place, error)
        return
    recorded = entry["record_count"]
    if recorded is not None and recorded != len(bitmap):
        text = (
            "The deletion vector's cardinality differs from its manifest entry: row counts computed from metadata are "
            "wrong."
        )
        out.say(place, "count-mismatch", text, field="record_count", found=len(bitmap), expected=recorded)
    if named:
        out.claim(Role.VECTOR, place, named, bitmap.max() + 1 if len(bitmap) else 0)


def _check_blob(place: Place, entry: Mapping[str, Any], footer: PuffinFile, out: Checked) -> None:
    """Compare the footer's blob metadata with the entry (Puffin spec, "deletion-vector-v1 blob type")."""
    at = (entry["deletion_vector"]["offset"], entry["deletion_vector"]["size_in_bytes"])
    blob = next((b for b in footer.blobs if (b.offset, b.length) == at), None)
    if blob is None:
        text = "The Puffin footer lists no blob at the offset and length that the manifest entry gives."
        blobs = ", ".join(f"{b.offset}+{b.length}" for b in footer.blobs[:5])
        out.say(
            place, "puffin-blob-invalid", text, field="content_offset", found=f"{at[0]}+{at[1]}", expected=blobs or None
        )
        return
    in_footer = blob.referenced_data_file
    if in_footer is not None and entry["referenced_file"] and in_footer != entry["referenced_file"]:
        text = "The Puffin footer names a different data file for the vector than the manifest entry does."
        named = entry["referenced_file"]
        out.say(place, "puffin-blob-invalid", text, field="referenced-data-file", found=in_footer, expected=named)
    counts = blob.cardinality, entry["record_count"]
    if None not in counts and counts[0] != counts[1]:
        text = "The Puffin footer gives a different cardinality than the manifest entry does."
        out.say(place, "puffin-blob-invalid", text, field="cardinality", found=counts[0], expected=counts[1])


def check_positions(
    state: TableState, place: Place, file: EntryBatch, entry: Mapping[str, Any], footer: FileFacts, out: Checked
) -> None:
    """Check a position delete file: its rows, and that each data file that they name has enough rows."""
    if footer.columns and not footer.ids:
        text = "The delete file has no field ids: readers that resolve columns by field id refuse it."
        out.say(place, "data-no-field-ids", text, expected=f"file_path {FILE_PATH_ID}, pos {POS_ID}")
    try:
        rows = read_position_deletes(state.storage, place.location, entry["file_format"])
    except IceexploreError as error:
        out.fail(place, error)
        return
    _check_sorted(place, rows, out)
    found = rows.group_by("file_path", use_threads=False).aggregate([("pos", "min"), ("pos", "max")])
    referenced = entry["referenced_file"]
    for row in found.to_pylist():
        named = row["file_path"]
        if row["pos_min"] < 0:
            text = f"A negative position of {named} is deleted: readers refuse the file."
            out.say(place, "delete-position", text, field="pos", found=row["pos_min"], expected="0 or more")
        if referenced and not same_location(named, referenced):
            text = (
                "The file deletes rows of a data file other than the one its manifest entry references: readers do "
                "not apply these deletes."
            )
            out.say(place, "delete-scope", text, field="referenced_data_file", found=referenced, expected=named)
        out.claim(Role.POSITIONS, place, named, row["pos_max"] + 1)
    stats = file.stats.get(FILE_PATH_ID)
    if stats is not None and len(found):
        _check_path_bounds(place, stats, found["file_path"], out)


def _check_sorted(place: Place, rows: pa.Table, out: Checked) -> None:
    """Check the order of the rows.

    Spec, "Position Delete Files": sorted by path, then position, so that readers can merge without sorting.
    """
    if len(rows) < 2:
        return
    path, pos = rows["file_path"].combine_chunks(), rows["pos"].combine_chunks()
    before, after = path.slice(0, len(path) - 1), path.slice(1)
    back = pc.and_(pc.equal(before, after), pc.greater(pos.slice(0, len(pos) - 1), pos.slice(1)))
    wrong = pc.or_(pc.greater(before, after), back)
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        text = f"The rows are not sorted by file_path and pos: row {at + 1} sorts before row {at}."
        out.say(place, "sort-order-untrue", text, field="file_path, pos")


def _check_path_bounds(place: Place, stats: pa.StructArray, paths: AnyChunkedArray, out: Checked) -> None:
    """Check that the bounds of ``file_path`` include all paths: readers match delete files to data files by bounds.

    A difference in scheme or host alone is not a wrong bound; it is reported as a wrong path.
    """
    spelled = [str(path) for path in paths.to_pylist()]
    for name, edge in (("lower", min), ("upper", max)):
        value = pc.struct_field(stats, [stats.type.get_field_index(name)])[0].as_py()
        if value is None:
            continue
        # Bounds are decoded only for columns of the table's schemas, so those of file_path may still be bytes.
        bound = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
        real = edge(spelled)
        if _outside(bound, real, name) and _outside(path_only(bound), path_only(real), name):
            text = f"The {name} bound of file_path excludes paths in the file: readers do not apply these deletes."
            where = f"{name}_bound of file_path ({FILE_PATH_ID})"
            out.say(place, "bounds-untrue", text, field=where, found=bound, expected=real)


def _outside(bound: str, value: str, name: str) -> bool:
    return value < bound if name == "lower" else value > bound


def check_equality(state: TableState, place: Place, entry: Mapping[str, Any], found: FileFacts, out: Checked) -> None:
    """Check that an equality delete file has the columns that it compares (spec, 135 ``equality_ids``)."""
    ids = entry["equality_ids"] or []
    if not ids:
        text = "The manifest entry of the equality delete file has no equality_ids: readers refuse the file."
        out.say(place, "equality-ids-invalid", text, field="equality_ids", found=ids)
        return
    known = state.metadata.all_fields()
    strangers = [i for i in ids if i not in known]
    if strangers:
        text = "equality_ids contains field ids that no schema of the table has."
        out.say(place, "equality-ids-invalid", text, field="equality_ids", found=strangers, expected=sorted(known))
    lacking = [i for i in ids if found.ids and i not in found.ids and i in known]
    if lacking:
        text = f"The file lacks columns listed in its equality_ids: {', '.join(known[i][0] for i in lacking)}."
        out.say(place, "equality-ids-invalid", text, field="equality_ids", found=sorted(found.ids), expected=ids)
