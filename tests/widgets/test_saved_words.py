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
from tests.graph.redaction_search import found, token

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
