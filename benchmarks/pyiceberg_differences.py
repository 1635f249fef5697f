"""Report where PyIceberg's ``inspect`` and ours differ, table by table, and which is right.

``python benchmarks/pyiceberg_differences.py`` lets Spark, with Iceberg's own runtime, write the tables of
``tests/spark/tables.py`` (or takes those in ``--warehouse``); Spark's value decides. With ``--corpus``, or
``ICEEXPLORE_CORPUS``, the tables of a folder are compared, too; for those, the reasons found on Spark's tables, or the
spec, decide. It prints a table and writes ``results/pyiceberg_differences.md``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from differences.compare import TABLES, Difference, differences, same

HERE = Path(__file__).parent
FILES = ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files")


@dataclass
class Found:
    """One kind of difference, over all tables."""

    where: set[str] = field(default_factory=set)  # metadata tables
    tables: set[str] = field(default_factory=set)
    judged: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    example: tuple[str, str, str] = ("", "", "")


Key = tuple[str, str, str]  # group of metadata tables, column, kind


def _key(name: str, difference: Difference) -> Key:
    group = "files" if name in FILES else name
    column = difference.column
    if column.startswith("readable_metrics.") and difference.kind in ("missing", "extra"):
        return group, "readable_metrics", "nested"
    column = re.sub(r"^(readable_metrics)\..*\.(\w+)$", r"\1.*.\2", column)
    column = re.sub(r"^((?:data_file\.)?partition)\..*$", r"\1.*", column)
    kind = difference.kind
    if kind == "raises":
        column = difference.theirs
    return group, column, kind


def compare(path: str, label: str, judge: Any, found: dict[Key, Found], opened: dict[str, str]) -> None:
    """Compare every metadata table of one table; ``judge(name)`` is Spark's Arrow table, or None."""
    from pyiceberg.table import StaticTable

    import iceexplore

    table = iceexplore.open(path)
    resolve = table.state.storage.resolve
    try:
        static = StaticTable.from_metadata(resolve(table.metadata_location))
        static.io = _moved_io(resolve)  # PyIceberg knows no moved tables: let it find the files all the same
    except Exception as error:  # whatever PyIceberg raises is a finding
        opened[label] = _short(error)
        return
    opened[label] = ""
    for name in TABLES:
        ours = table.inspect[name].arrow()
        try:
            theirs = _as_written(getattr(static.inspect, name)(), resolve, table.metadata_location)
            met = differences(name, ours, theirs)
        except Exception as error:
            theirs, met = None, [Difference("raises", "", "", _short(error))]
        spark = judge(name) if met else None
        for difference in met:
            item = found[_key(name, difference)]
            item.where.add(name)
            item.tables.add(label)
            item.example = item.example if item.example[0] else (label, difference.ours, difference.theirs)
            item.judged[_verdict(name, difference, ours, theirs, spark)] += 1


def _moved_io(resolve: Callable[[str], str]) -> Any:
    """PyIceberg's own FileIO for local files, behind our mapping of locations; it never goes to the network."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    class MovedFileIO(PyArrowFileIO):
        def new_input(self, location: str) -> Any:
            real = resolve(location)
            if "://" in real and not real.startswith("file://"):
                raise FileNotFoundError(f"{location} is not on this machine")
            return super().new_input(real)

    return MovedFileIO()


def _as_written(table: Any, resolve: Callable[[str], str], location: str) -> Any:
    """PyIceberg's table with the metadata file's location as the table spells it, not as it was opened here."""
    import pyarrow as pa

    if "file" not in table.column_names:
        return table
    here = resolve(location)
    files = [location if file == here else file for file in table["file"].to_pylist()]
    return table.set_column(table.column_names.index("file"), "file", pa.array(files, pa.string()))


def _verdict(name: str, difference: Difference, ours: Any, theirs: Any, spark: Any) -> str:
    if spark is None:
        return "–"
    if same(name, ours, spark, difference):
        return "ours"
    if theirs is not None and same(name, theirs, spark, difference):
        return "PyIceberg"
    return "neither"


def _short(error: Exception) -> str:
    """What was raised, in a line without what differs from table to table."""
    text = " ".join(str(error).split())
    if isinstance(error, FileNotFoundError):
        return "FileNotFoundError"
    text = re.sub(
        r"(?:[a-z]+:/)?(?:/[^\s/'\"]+)+/", "…/", text
    )  # where things are on this machine is nobody's business
    text = re.sub(r"\b\d{5,}\b", "…", text)
    text = re.sub(r"\b\d+: (?=added_)", "", text)
    return f"{type(error).__name__}: {text[:110]}"


@contextmanager
def _warehouse(given: Path | None) -> Iterator[tuple[Path, Any]]:
    sys.path.insert(0, str(HERE.parent))
    from tests.spark import tables  # type: ignore[import-untyped,unused-ignore]
    from tests.spark.session import start  # type: ignore[import-untyped,unused-ignore]

    with tempfile.TemporaryDirectory() as temporary:
        folder = given or Path(temporary)
        session = start(folder)
        try:
            if given is None:
                tables.write(session)  # type: ignore[attr-defined, unused-ignore]
            yield folder, session
        finally:
            session.stop()


def _corpus_tables(folder: Path) -> list[Path]:
    found = {p.parent.parent for p in folder.rglob("*.metadata.json") if p.parent.name == "metadata"}
    return sorted(found)


def main() -> None:
    """Compare, print, write the report."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description="Where PyIceberg's inspect differs from ours, and who is right.")
    parser.add_argument("--warehouse", type=Path, help="a warehouse that tests/spark/tables.py wrote (a new one)")
    corpus = os.environ.get("ICEEXPLORE_CORPUS")
    parser.add_argument("--corpus", type=Path, default=Path(corpus) if corpus else None, help="a folder of tables")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "pyiceberg_differences.md")
    options = parser.parse_args()

    found: dict[Key, Found] = defaultdict(Found)
    opened: dict[str, str] = {}
    with _warehouse(options.warehouse) as (folder, session):
        for path in sorted((folder / "db").iterdir()):

            def judge(name: str, table: str = path.name) -> Any:
                try:
                    return session.table(f"cat.db.{table}.{name}").toArrow()
                except Exception as error:
                    print(f"Spark cannot read {table}.{name}: {_short(error)}", file=sys.stderr)
                    return None

            compare(str(path), path.name, judge, found, opened)
    wild: dict[Key, Found] = defaultdict(Found)
    wild_opened: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for path in _corpus_tables(options.corpus) if options.corpus else []:
        try:
            compare(str(path), str(path.relative_to(options.corpus)), lambda name: None, wild, wild_opened)
        except Exception as error:
            skipped[str(path)] = _short(error)
    from differences.report import report

    text = report(found, opened, wild, wild_opened, skipped, version("pyiceberg"))
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
