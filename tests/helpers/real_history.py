"""A history of commits on a table with real data, and the rows that every reader must then find."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from iceexplore.commits import Change, Operation
from iceexplore.deletes import new_dv_blob, write_equality_deletes, write_position_deletes, write_puffin
from iceexplore.manifests import ContentType, EntryBatch, concat_batches
from tests.helpers.tables.list_table import KINDS, ListLab, batch, entry, live_rows

Row = tuple[int, str | None, float | None]


@dataclass
class RealHistory:
    """Commits through a `ListLab`, with the files that they name; ``rows`` is the model."""

    lab: ListLab
    rows: dict[str, list[Row]] = field(default_factory=dict)
    kinds: dict[str, str | None] = field(default_factory=dict)
    gone: dict[str, set[int]] = field(default_factory=dict)
    with_dv: set[str] = field(default_factory=set)

    def expected(self) -> list[Row]:
        """The rows of the table, sorted."""
        rows = [r for f, rs in self.rows.items() for i, r in enumerate(rs) if i not in self.gone.get(f, set())]
        return sorted(rows, key=str)

    @classmethod
    def on(cls, lab: ListLab) -> RealHistory:
        """On top of a table that somebody else wrote, without deletes."""
        import pyarrow.parquet as pq

        history = cls(lab)
        for row in live_rows(lab.state):
            assert row["content_type"] == ContentType.DATA
            table = pq.ParquetFile(row["location"]).read(["id", "kind", "x"])
            history.rows[row["location"]] = list(zip(*(c.to_pylist() for c in table.columns), strict=True))
            history.kinds[row["location"]] = row["kind"]
        return history

    def append(self, *files: list[Row]) -> list[str]:
        """One file per list of rows; all rows of a file are of one kind."""
        made = [self._file(rows) for rows in files]
        self.lab.commit(Change("append", concat_batches(made)))
        return [m.entries["location"][0].as_py() for m in made]

    def delete_files(self, *files: str) -> None:
        """Files go."""
        self.lab.commit(Change("delete", remove_data=files))
        self._forget(files)

    def overwrite(self, files: list[str], rows: list[Row]) -> str:
        """Files go, one comes."""
        made = self._file(rows)
        self.lab.commit(Change("overwrite", made, remove_data=tuple(files)))
        self._forget(files)
        return str(made.entries["location"][0].as_py())

    def compact(self, files: list[str]) -> str:
        """What is left of some files goes to one."""
        kept = [r for f in files for i, r in enumerate(self.rows[f]) if i not in self.gone.get(f, set())]
        made = self._file(kept)
        self.lab.commit(Change("replace", made, remove_data=tuple(files)))
        self._forget(files)
        return str(made.entries["location"][0].as_py())

    def delete_rows(self, rows: dict[str, list[int]], operation: Operation = "delete") -> None:
        """Rows go by position: position delete files in v2, deletion vectors later."""
        for file, positions in rows.items():
            self.gone.setdefault(file, set()).update(positions)
        if self.lab.options.format_version == 2:
            entries = []
            for file, positions in rows.items():
                data = write_position_deletes([file] * len(positions), positions)
                entries.append(self._delete_entry(data, len(positions), "parquet", ContentType.POSITION_DELETE))
            self._commit_deletes(operation, entries, [self.kinds[f] for f in rows])
            return
        data, places = write_puffin([new_dv_blob(BitMap64(sorted(self.gone[f])), f) for f in rows], created_by="test")
        location = self._store(data, "puffin")
        entries = [
            entry(
                location,
                len(self.gone[file]),
                len(data),
                content_type=int(ContentType.POSITION_DELETE),
                file_format="puffin",
                referenced_file=file,
                deletion_vector={"offset": at, "size_in_bytes": size},
            )
            for file, (at, size) in zip(rows, places, strict=True)
        ]
        replaced = tuple(f for f in rows if f in self.with_dv)
        self.with_dv |= set(rows)
        self._commit_deletes(operation, entries, [self.kinds[f] for f in rows], replaced)

    def delete_ids(self, ids: list[int], kind: str | None) -> None:
        """Rows of one partition go by equality."""
        schema = self.lab.state.schema
        data = write_equality_deletes(pa.table({"id": pa.array(ids, pa.int64())}), schema, [1])
        made = self._delete_entry(data, len(ids), "parquet", ContentType.EQUALITY_DELETE)
        self._commit_deletes("delete", [made | {"equality_ids": [1]}], [kind])
        for file, rows in self.rows.items():
            if self.kinds[file] == kind:
                self.gone.setdefault(file, set()).update(i for i, r in enumerate(rows) if r[0] in ids)

    def rewrite_manifests(self) -> None:
        """No change of the data."""
        self.lab.commit(Change("replace", rewrite_manifests=True))

    def _commit_deletes(
        self,
        operation: Operation,
        entries: list[dict[str, Any]],
        kinds: list[str | None],
        replaced: tuple[str, ...] = (),
    ) -> None:
        self.lab.commit(Change(operation, batch(entries, kinds), replace_dvs=replaced))

    def _forget(self, files: list[str] | tuple[str, ...]) -> None:
        for file in files:
            self.rows.pop(file)
            self.gone.pop(file, None)
            self.with_dv.discard(file)

    def _file(self, rows: list[Row]) -> EntryBatch:
        kind = rows[0][1] if rows else None
        columns = [pa.array([r[i] for r in rows], t) for i, t in enumerate((pa.int64(), pa.string(), pa.float64()))]
        made = self.lab.data_file(pa.table(columns, names=["id", "kind", "x"]), kind)
        location = made.entries["location"][0].as_py()
        self.rows[location], self.kinds[location] = rows, kind
        assert made.partition is not None and made.partition.type == KINDS
        return made

    def _store(self, data: bytes, suffix: str) -> str:
        path = self.lab.folder / "data" / f"{uuid.UUID(int=self.lab.names.getrandbits(128), version=4)}.{suffix}"
        path.write_bytes(data)
        return str(path)

    def _delete_entry(self, data: bytes, rows: int, form: str, content: ContentType) -> dict[str, Any]:
        return entry(self._store(data, form), rows, len(data), content_type=int(content), file_format=form)


def rows_of(start: int, count: int, kind: str | None) -> list[Row]:
    """So many rows."""
    return [(i, kind, None if i % 5 == 0 else i / 4) for i in range(start, start + count)]


def play(folder: Path, version: int, *, equality: bool, **options: Any) -> tuple[RealHistory, list[list[Row]]]:
    """Every kind of commit, one after the other; the rows after each metadata file (the first is empty)."""
    history = RealHistory(ListLab(folder, version, **options))
    states: list[list[Row]] = [[]]

    def done() -> None:
        states.append(history.expected())
        assert len(states) == history.lab.version

    a, b = history.append(rows_of(0, 10, "a"), rows_of(10, 10, "b"))
    done()
    (c,) = history.append(rows_of(20, 10, "a"))
    done()
    d = history.overwrite([b], rows_of(30, 5, None))
    done()
    if version > 1:
        history.delete_rows({a: [0, 9], c: [3]})
        done()
        history.delete_rows({c: [4, 5], d: [0]}, "overwrite")
        done()
    if equality and version > 1:
        history.delete_ids([1, 22], "a")
        done()
    (e,) = history.append(rows_of(20, 4, "a"))
    done()
    history.rewrite_manifests()
    done()
    f = history.compact([a, c])
    done()
    if version > 1:
        history.delete_rows({f: [0, 1], e: [0]})
        done()
    history.delete_files(e)
    done()
    return history, states
