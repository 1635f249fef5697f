"""Saved pages: words planted wherever a table has text, and every byte of the page searched for them."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import fastavro
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.helpers.redaction_search import found, members, token

CREDENTIAL = "credential"


def _table(folder: Path, version: int) -> tuple[Any, dict[str, list[str]]]:
    """A table, and the words in it by what they are."""
    words = {kind: [token((kind, version, i)) for i in range(8)] for kind in ("value", "path", "name", CREDENTIAL)}
    value, path, name, secret = words["value"], words["path"], words["name"], words[CREDENTIAL]
    place = folder / path[0] / name[7]
    lab = ix.create(
        place,
        {"id": "long", name[0]: "string"},
        partition_by=[name[0]],
        format_version=version,
        properties={"key": secret[0], "pin": secret[1], "note": f"--password {secret[2]}", "owner": value[0]},
    )
    lab.append({"id": [1, 2], name[0]: [value[1], value[2]]})
    lab.branch(name[1])
    lab.tag(name[2])
    newest = max((place / "metadata").glob("*.metadata.json"), key=lambda p: p.stat().st_mtime_ns)
    document = json.loads(newest.read_bytes())
    document["properties"] |= {"hive.metastore.client.auth": secret[3], "see": f"s3://KEY:{secret[4]}@bucket/x"}
    document["properties"][name[3]] = "1"
    document["schemas"][0]["fields"][1] |= {"doc": name[4]}
    if version > 2:
        document["schemas"][0]["fields"][1] |= {"initial-default": value[3], "write-default": value[4]}
    snapshot = document["snapshots"][-1]["summary"]
    snapshot |= {
        "changed-partition": f"city={value[5]}",
        "note": f"password: {secret[5]}",
        f"partitions.x={value[6]}": "1",
    }
    newest.write_text(json.dumps(document))
    for file in (place / "metadata").glob("*-m*.avro"):
        reader = fastavro.reader(io.BytesIO(file.read_bytes()))
        records = list(reader)
        for record in records:
            if isinstance(record.get("data_file"), dict):
                record["data_file"]["file_path"] += f"?X-Amz-Signature={secret[6]}&token={secret[6]}"
                record["data_file"]["key_metadata"] = secret[7].encode()
        own = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        out = io.BytesIO()
        fastavro.writer(out, reader.writer_schema, records, metadata=own)
        file.write_bytes(out.getvalue())
    return ix.open(place), words


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_word_is_left(version: int, tmp_path: Path) -> None:
    table, words = _table(tmp_path, version)
    widget = Explorer(table)
    whole = widget.save_html(tmp_path / "whole.html", redact=False).path
    there = {w for w, _ in found([w for some in words.values() for w in some], [("whole", whole.read_bytes())])}
    assert len(there) >= 20, "they are where they could be seen"
    hidden: dict[Any, list[str]] = {
        ("credentials",): [CREDENTIAL],
        ("values",): ["value", "path"],
        ("paths",): ["path"],
        ("names",): ["name", "path"],
        True: list(words),
    }
    for redact, kinds in hidden.items():
        page = widget.save_html(tmp_path / "page.html", redact=redact, overwrite=True)
        sought = [w for kind in kinds for w in words[kind]]
        if redact == ("values",):
            sought = [w for w in sought if w not in words["name"]]
        assert not found(sought, [(str(redact), page.path.read_bytes())])
    text = page.path.read_text()
    assert "added-records" in text and "record_count" in text
    assert set(widget.selection) and widget.save_html(tmp_path / "again.html", redact=False).size > 100_000
    widget.close()


def _everywhere(folder: Path, version: int, *, gone: bool) -> tuple[Any, dict[str, list[str]]]:
    """A table with words in what problems quote, too: what does not fit the spec, and files that are not there."""
    kinds = ("value", "path", "name", CREDENTIAL)
    words = {kind: [token((kind, "all", version, i)) for i in range(14)] for kind in kinds}
    value, path, name, secret = words["value"], words["path"], words["name"], words[CREDENTIAL]
    place = folder / path[0] / name[7]
    data = {"path": str(folder / path[1] / "data")}
    lab = ix.create(
        place,
        {"id": "long", name[0]: "string", name[8]: "struct<x: string>"},
        partition_by=[name[0], f"truncate(30, {name[0]})"],
        format_version=version,
        properties={"write.data.path": data["path"], "write.delete.mode": "merge-on-read", "key": secret[0]},
    )
    lab.append({"id": [1, 2], name[0]: [value[1], value[2]], name[8]: [{"x": value[3]}, {"x": f"pin={secret[1]}"}]})
    lab.append({"id": [3], name[0]: [value[1]], name[8]: [{"x": value[3]}]})
    lab.delete("id = 1")
    newest = max((place / "metadata").glob("*.metadata.json"), key=lambda p: p.stat().st_mtime_ns)
    document = json.loads(newest.read_bytes())
    now = document["current-snapshot-id"]
    document["table-uuid"] = value[13]
    document["properties"] |= {
        "see": f"s3://KEY:{secret[4]}@bucket/x",
        "owner": value[0],
        name[3]: "1",
        "schema.name-mapping.default": json.dumps([{"field-id": 1, "names": ["id", name[9]]}]),
    }
    document["schemas"][0]["fields"][1] |= {"doc": name[4], "initial-default": value[4], "write-default": value[5]}
    document["snapshots"][-1]["summary"] |= {
        "changed-partition": f"city={value[6]}",
        "note": f"password: {secret[5]}",
        f"partitions.x={value[7]}": "1",
        "total-records": value[8],
        "engine-name": value[12],
    }
    document["snapshots"][0]["summary"] |= {"total-records": f"token={secret[6]}", "total-data-files": value[9]}
    document["refs"] |= {
        name[1]: {"snapshot-id": now, "type": "branch", "max-ref-age-ms": -5},
        name[2]: {"snapshot-id": now, "type": "tag"},
        name[10]: {"snapshot-id": 77, "type": "branch"},
    }
    document["sort-orders"] = [
        {"order-id": 1, "fields": [
            {"transform": value[10], "source-id": 2, "direction": "asc", "null-order": "nulls-first"}]}
    ]  # fmt: skip
    document["default-sort-order-id"] = 1
    log = {"timestamp-ms": 1, "metadata-file": f"s3://bucket/{path[2]}/{path[3]}.metadata.json"}
    document["metadata-log"] = [*document.get("metadata-log", []), log]
    blob = {"type": "x", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
    document["statistics"] = [
        {
            "snapshot-id": now,
            "statistics-path": f"{document['location']}/{path[4]}.puffin",
            "file-size-in-bytes": 9,
            "file-footer-size-in-bytes": 3,
            "blob-metadata": [blob | {"properties": {"most": value[11], "token": secret[7]}}],
        }
    ]
    document["partition-statistics"] = [
        {"snapshot-id": now, "statistics-path": f"/x/{path[5]}/y.parquet", "file-size-in-bytes": 9}
    ]
    newest.write_text(json.dumps(document))
    if gone:
        files = [p for p in (place / "metadata").iterdir() if p.suffix in (".avro", ".parquet")]
        min((p for p in files if "snap-" not in p.name), key=lambda p: p.stat().st_mtime_ns).unlink()
    return ix.open(place), words


@pytest.mark.parametrize(("version", "gone"), [(2, True), (3, False), (4, False)])
def test_no_word_is_left_whatever_was_done_before(version: int, gone: bool, tmp_path: Path) -> None:
    """Two snapshots compared, a plan, a commit with its Python, all problems read: in the widget, not in the page."""
    table, words = _everywhere(tmp_path, version, gone=gone)
    value, name = words["value"], words["name"]
    widget = Explorer(table)
    ids = [str(s.snapshot_id) for s in table.snapshots]
    widget.select(snapshot=ids[-1], against=ids[0])
    widget.tab, widget.scan_filter = "scan", f"{name[0]} = '{value[1]}'"
    widget.settle()
    widget.tab = "commit"
    widget.apply("set_properties", name=f"note {name[11]}", value=f"x {value[1]}, password={words[CREDENTIAL][9]}")
    widget.settle()
    widget.tab, widget.read_all = "problems", 1
    widget.settle()
    done = json.dumps([widget.scan_why, widget.commit_line, widget.problems, widget.comparison])
    assert value[1] in done and name[11] in done and widget.problems["counts"], "they are in what is not saved"
    whole = widget.save_html(tmp_path / "whole.html", redact=False).path.read_bytes()
    there = {w for w, _ in found([w for some in words.values() for w in some], [("whole", whole)])}
    assert len(there) >= 28, "they are where they could be seen"
    hidden: dict[Any, list[str]] = {
        "credentials": [CREDENTIAL],
        "values": ["value", "path"],
        "paths": ["path"],
        "names": ["name", "path"],
        True: list(words),
    }
    for redact, kinds in hidden.items():
        page = widget.save_html(tmp_path / "page.html", redact=redact, overwrite=True)
        sought = [w for kind in kinds for w in words[kind]]
        assert not found(sought, [(str(redact), page.path.read_bytes()), ("left out", repr(page.left_out).encode())])
        bundle = table.bundle(tmp_path / "x.zip", redact=redact, overwrite=True)
        assert not found(sought, members(tmp_path / "x.zip"))
        assert bundle.members
    widget.close()


def test_the_title_of_a_page_has_no_secret(tmp_path: Path) -> None:
    word = token("title")
    ix.create(tmp_path / f"ghp_{word}", {"id": "long"})
    widget = Explorer(ix.open(tmp_path / f"ghp_{word}"))
    page = widget.save_html(tmp_path / "page.html")
    assert not found([word], [("page", page.path.read_bytes())])
    widget.close()


def test_the_sample_is_saved_fast(tmp_path: Path) -> None:
    """Each root was made again for each of its files: 11 seconds of processor time; machines differ, and are shared."""
    widget = Explorer(ix.sample("trips"))
    widget.save_html(tmp_path / "warm.html", rows=1, max_bytes=100_000)
    begin = time.process_time()
    widget.save_html(tmp_path / "page.html")
    assert time.process_time() - begin < 6
    widget.close()


def test_roots_and_leaves_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iceexplore.manifests import _reader

    made: list[str] = []
    whole = _reader._root_manifest

    def counted(location: str, *args: Any, **given: Any) -> Any:
        made.append(location)
        return whole(location, *args, **given)

    monkeypatch.setattr(_reader, "_root_manifest", counted)
    table = ix.sample("trips")
    widget = Explorer(table)
    widget.save_html(tmp_path / "page.html")
    assert len(made) <= 3 * len(table.snapshots), "it was 2,187 times"
    widget.close()


def test_texts_and_statistics_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each snapshot has most of the files of the one before, and each table of a snapshot the same statistics."""
    from iceexplore.graph import blank_secrets
    from iceexplore.manifests.column_stats import _maps as _stats
    from iceexplore.widgets.saved_page import _redact as _saved_redact

    count = {"texts": 0, "columns": 0}
    together = _stats.MapStats._together

    def texts(text: str) -> str:
        count["texts"] += 1
        return blank_secrets(text)

    def columns(self: Any, ids: Any, kind: Any) -> Any:
        count["columns"] += 1
        return together(self, ids, kind)

    monkeypatch.setattr(_saved_redact, "blank_secrets", texts)
    monkeypatch.setattr(_stats.MapStats, "_together", columns)
    widget = Explorer(ix.sample("trips"))
    widget.save_html(tmp_path / "page.html")
    assert count["texts"] < 6_000, "it was 61,000 times"
    assert count["columns"] < 450, "it was 530 times"
    widget.close()


def test_what_summaries_say_in_words_is_redacted_with_values(tmp_path: Path) -> None:
    made = Explorer(ix.sample("trips"))
    assert "iceexplore samples" in " ".join(made.writers)
    for kinds, there in ((("credentials",), True), (("values",), False), (("names",), False)):
        page = made.save_html(tmp_path / "page.html", redact=kinds, max_bytes=200_000, overwrite=True)
        assert ('"writers"' in (text := page.path.read_text(encoding="utf-8"))) and ("spark ·" in text) == there
    made.close()
