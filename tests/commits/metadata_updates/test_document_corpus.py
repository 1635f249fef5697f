"""Real histories replayed: from one metadata file to the next, our document is what the writer wrote.

Each step whose kind follows from the two files is repeated from the older one: a commit, an evolution of the
schema or the partition spec, an expiration, properties.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iceexplore.commits import (
    add_snapshot,
    evolve_schema,
    evolve_spec,
    expire_snapshots,
    next_document,
    set_properties,
)
from iceexplore.errors import IceexploreError, Problems, RuleError
from iceexplore.metadata import (
    Schema,
    StructType,
    TableMetadata,
    default_to_json,
    parse_schema,
    parse_table_metadata,
    type_to_json,
)
from iceexplore.storage import parse_document

Json = dict[str, Any]

#: Keys that every step may change.
CLOCK = {"last-updated-ms", "metadata-log"}
COMMIT = CLOCK | {
    "snapshots", "snapshot-log", "refs", "current-snapshot-id", "last-sequence-number", "next-row-id"
}  # fmt: skip
SCHEMA = CLOCK | {"schema", "schemas", "current-schema-id", "last-column-id", "properties"}
SPEC = CLOCK | {"partition-spec", "partition-specs", "default-spec-id", "last-partition-id"}
EXPIRATION = CLOCK | {"snapshots", "snapshot-log", "statistics", "partition-statistics", "refs"}


def steps(corpus: Path) -> Iterator[tuple[Path, Json, Json]]:
    """Each metadata file with the one before it, where both are there."""
    for folder in sorted({p.parent for p in corpus.rglob("*.metadata.json*")}):
        documents: dict[str, Json] = {}
        for path in sorted(folder.glob("*.metadata.json*")):
            try:
                documents[path.name], _ = parse_document(path.read_bytes(), str(path))
            except IceexploreError:
                continue
        for name, new in documents.items():
            log = new.get("metadata-log") or []
            old = documents.get(log[-1]["metadata-file"].rpartition("/")[2]) if log else None
            if old is not None:
                yield folder / name, old, new


def ids(document: Json) -> list[int]:
    return [s["snapshot-id"] for s in document.get("snapshots") or []]


def finished(document: Json, new: Json) -> Json:
    return next_document(
        document, previous_location=new["metadata-log"][-1]["metadata-file"], timestamp_ms=new["last-updated-ms"]
    )


def commit(old: Json, new: Json) -> Json | None:
    added = [s for s in new.get("snapshots") or [] if s["snapshot-id"] not in ids(old)]
    if len(added) != 1 or not set(ids(old)) < set(ids(new)):
        return None
    main = {"main": {"snapshot-id": new.get("current-snapshot-id"), "type": "branch"}}
    at = [n for n, r in (new.get("refs") or main).items() if r["snapshot-id"] == added[0]["snapshot-id"]]
    branches = [n for n in at if (new.get("refs") or main)[n]["type"] == "branch"]
    return add_snapshot(old, snapshot=added[0], ref=branches[0] if branches else None)


def metadata(document: Json) -> TableMetadata:
    return parse_table_metadata(document, "table", Problems())


def evolution(old: Json, new: Json) -> Json | None:
    """Return the arguments that lead from one current schema to the other, derived from field ids."""
    before, after = metadata(old).schema(), metadata(new).schema()
    if metadata(old).current_schema_id == metadata(new).current_schema_id:
        return None
    was, now = before.by_id(), after.by_id()
    parents = {c: p for p, fields in struct_fields(after).items() for c in fields}
    out: Json = {"identifier": [now[i][0] for i in after.identifier_field_ids]}
    outermost = [i for i in now if i not in was and (parents.get(i) is None or parents[i] in was) and i in parents]
    path = {}
    for i in outermost:
        parent = parents[i]
        path[i] = now[i][0] if parent is None else f"{was[parent][0]}.{now[i][1].name}"
    for key in ("initial_default", "write_default"):
        values = {i: getattr(now[i][1], key) for i in path}
        out[key] = {path[i]: default_to_json(now[i][1].type, v) for i, v in values.items() if v is not None}
    out["add"] = {path[i]: type_to_json(now[i][1].type) for i in sorted(outermost)}
    out["require"] = [path[i] for i in outermost if now[i][1].required]
    out["drop"] = [name for i, (name, _) in was.items() if i not in now and not _inside_dropped(before, i, now)]
    out["doc"] = {path[i]: now[i][1].doc for i in outermost if now[i][1].doc is not None}
    for key in ("rename", "update"):
        out[key] = {}
    out["make_optional"] = []
    for i in was.keys() & now.keys():
        name, old_field = was[i]
        new_field = now[i][1]
        if new_field.name != old_field.name:
            out["rename"][name] = new_field.name
        if new_field.doc != old_field.doc:
            out["doc"][name] = new_field.doc
        if (
            type(new_field.type) is type(old_field.type)
            and not struct_or_list(new_field)
            and new_field.type != old_field.type
        ):
            out["update"][name] = str(new_field.type)
        if old_field.required and not new_field.required:
            out["make_optional"].append(name)
    out["move"] = {}
    for parent, children in struct_fields(after).items():
        if parent is not None and parent not in was:
            continue
        kept = [i for i in struct_fields(before).get(parent, []) if i in now]
        natural = kept + [i for i in sorted(outermost) if parents[i] == parent]
        if natural != children:
            names = [path.get(i) or was[i][0] for i in children]
            out["move"] |= {n: "first" if k == 0 else f"after {names[k - 1]}" for k, n in enumerate(names)}
    return out


def struct_or_list(field: Any) -> bool:
    return not hasattr(field.type, "name")


def struct_fields(schema: Schema) -> dict[int | None, list[int]]:
    out: dict[int | None, list[int]] = {None: [f.field_id for f in schema.fields]}
    for _, f in schema.walk():
        if isinstance(f.type, StructType):
            out[f.field_id] = [c.field_id for c in f.type.fields]
    return out


def _inside_dropped(schema: Schema, field_id: int, now: dict[int, Any]) -> bool:
    name = schema.by_id()[field_id][0]
    return any(name.startswith(f"{other}.") for i, (other, _) in schema.by_id().items() if i not in now)


def spec_change(old: Json, new: Json) -> Json | None:
    before, after = metadata(old).spec(), metadata(new).spec()
    if before is None or after is None or before.spec_id == after.spec_id:
        return None
    names = {i: name for i, (name, _) in metadata(new).schema().by_id().items()}
    was = {f.field_id: f for f in before.fields}
    now = {f.field_id: f for f in after.fields if f.transform != "void" or was.get(f.field_id, f).transform == "void"}
    added = [(f"{f.transform}({names[f.source_id]})", f.name) for i, f in now.items() if i not in was]
    return {
        "add": added,
        "remove": [f.name for i, f in was.items() if i not in now],
        "rename": {was[i].name: f.name for i, f in now.items() if i in was and was[i].name != f.name},
    }


def normal(document: Json) -> Json:
    """The document by what it says, not how: types, the name mapping and empty lists can be spelled otherwise."""
    out = {key: value for key, value in document.items() if value not in (None, [])}
    for key in ("schema", "schemas"):
        if isinstance(document.get(key), list):
            out[key] = [(s.get("schema-id", 0), parse_schema({"schema-id": 0, **s})) for s in document[key]]
        elif key in document:
            out[key] = parse_schema({"schema-id": 0, **document[key]})
    mapping = (document.get("properties") or {}).get("schema.name-mapping.default")
    if mapping is not None:
        out["properties"] = {**document["properties"], "schema.name-mapping.default": json.loads(mapping)}
    return out


def again(old: Json, new: Json) -> tuple[str, Json] | None:
    """What kind of step it was, and our document after it; None where the files do not tell."""
    changed = {k for k in {*old, *new} if old.get(k) != new.get(k)}
    if "snapshots" in changed and changed <= COMMIT:
        made = commit(old, new)
        return None if made is None else ("commit", finished(made, new))
    if "schemas" in changed and changed <= SCHEMA and "schemas" in old:
        arguments = evolution(old, new)
        return None if arguments is None else ("schema", finished(evolve_schema(old, **arguments), new))
    if "partition-specs" in changed and changed <= SPEC:
        arguments = spec_change(old, new)
        return None if arguments is None else ("spec", finished(evolve_spec(old, **arguments), new))
    if "snapshots" in changed and changed <= EXPIRATION and set(ids(new)) < set(ids(old)):
        gone = [i for i in ids(old) if i not in ids(new)]
        made, went = expire_snapshots(old, ids=gone, older_than_ms=0)
        assert set(went) == set(gone)
        return "expiration", finished(made, new)
    if "properties" in changed and changed <= CLOCK | {"properties"}:
        was, now = old.get("properties") or {}, new["properties"]
        given = {k: v for k, v in now.items() if was.get(k) != v}
        made = set_properties(old, set=given, remove=[k for k in was if k not in now])
        return "properties", finished(made, new)
    return None


#: Steps whose second file is not what a writer of its format version makes of the first.
ODD = {
    "duckdb/equality_deletes": "two entries of snapshot-log are older than the file before",
    "impala/iceberg_v2_delete_positional": "v2 without refs",
    "impala/iceberg_v3_deletion_vectors": "files were renamed by hand, also in metadata-log",
    "impala/iceberg_v3_row_lineage": "the same",
    "impala/iceberg_v3_row_lineage_orc": "the same",
}
#: Steps that break a rule.
BREAKS = {
    "duckdb/add_columns_with_defaults": "default-values",  # in v2
    "duckdb/add_columns_with_defaults_in_struct": "default-values",
}


@pytest.mark.corpus
def test_real_histories(corpus: Path) -> None:
    counts: Counter[str] = Counter()
    differ, odd, broken = [], set(), {}
    for path, old, new in steps(corpus):
        table = "/".join(path.relative_to(corpus).parts[:2])
        try:
            made = again(old, new)
        except RuleError as error:
            broken[table] = error.rule
            continue
        if made is None:
            continue
        kind, document = made
        ours, theirs = normal(document), normal(new)
        keys = {k for k in {*ours, *theirs} if ours.get(k) != theirs.get(k)}
        if not keys:
            counts[kind] += 1
        elif table in ODD:
            odd.add(table)
        else:
            differ.append((str(path.relative_to(corpus)), kind, sorted(keys)))
    assert differ == []
    assert odd == set(ODD)
    assert broken == BREAKS
    assert counts >= Counter(commit=116, schema=4, spec=2, expiration=8, properties=7)
