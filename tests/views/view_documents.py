"""View metadata for tests: documents of the adopted spec and of early drafts, and the early draft's own example."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"
#: Times at which versions 1, 2, … were created, in milliseconds.
START = 1_573_518_431_292
HOUR = 3_600_000

COLUMNS = [
    {"id": 1, "name": "day", "required": False, "type": "date"},
    {"id": 2, "name": "trips", "required": False, "type": "long", "doc": "Number of trips"},
]


def schema(schema_id: int, *fields: Mapping[str, Any]) -> dict[str, Any]:
    """A schema's JSON."""
    return {"schema-id": schema_id, "type": "struct", "fields": list(fields or COLUMNS)}


def version(
    version_id: int, sql: str | Mapping[str, str] = "SELECT day, trips FROM t", /, **changes: Any
) -> dict[str, Any]:
    """A version of the adopted spec; ``sql`` is Spark's, or that of each dialect."""
    texts = {"spark": sql} if isinstance(sql, str) else sql
    return {
        "version-id": version_id,
        "timestamp-ms": START + version_id * HOUR,
        "schema-id": 1,
        "summary": {"engine-name": "Spark", "engine-version": "4.1.0"},
        "default-catalog": "prod",
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": text, "dialect": name} for name, text in texts.items()],
        **changes,
    }


def log(*version_ids: int) -> list[dict[str, int]]:
    """A version log, one entry each hour."""
    return [{"timestamp-ms": START + i * HOUR, "version-id": v} for i, v in enumerate(version_ids, 1)]


def view(versions: Sequence[Mapping[str, Any]] = (), /, *logged: int, **changes: Any) -> dict[str, Any]:
    """Valid view metadata; the last version of the log is current."""
    made = list(versions) or [version(1)]
    order = logged or tuple(v["version-id"] for v in made)
    return {
        "view-uuid": UUID,
        "format-version": 1,
        "location": "/warehouse/db/daily",
        "current-version-id": order[-1],
        "properties": {"comment": "Trips by day"},
        "versions": made,
        "version-log": log(*order),
        "schemas": [schema(1)],
        **changes,
    }


def without(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A copy without some keys."""
    return {key: value for key, value in document.items() if key not in keys}


def write_view(folder: Path, document: Mapping[str, Any] | str | bytes, name: str = "v1.metadata.json") -> Path:
    """Write a metadata file into a view's folder; return the folder."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    data = document if isinstance(document, bytes) else document if isinstance(document, str) else json.dumps(document)
    (folder / "metadata" / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


_SCHEMA_1 = """{
    "schema-id": 1,
    "type" : "struct",
    "fields" : [ {
      "id" : 0,
      "name" : "c1",
      "required" : false,
      "type" : "int",
      "doc" : "" => Column comment
    }, {
      "id" : 1,
      "name" : "c2",
      "required" : false,
      "type" : "string",
      "doc" : ""
    } ]
  }"""

#: Appendix A of the early draft, as it is written: with notes after ``=>`` and trailing commas.
EXAMPLE_CREATED = (
    """{
  "format-version" : 1, => JSON format. Will change as format evolves.
  "location" : "s3n://my_company/my/warehouse/anorwood.db/common_view",
  "current-version-id" : 1, => current / latest version of the view. '1' here since this metadata was created.
  "properties" : {  => shows properties of the view
    "comment" : "View captures all the data from the table" => View comment
  },
  "versions" : [ { => Last few versions of the view.
    "version-id" : 1,
    "parent-version-id" : -1,
    "timestamp-ms" : 1573518431292,
    "summary" : {
      "operation" : "create", => View operation that caused this metadata to be created
      "engineVersion" : "presto-350", => Version of the engine that performed the operation (create / replace)
    },
    "representations" : [ { => SQL metadata of the view
      "type" : "sql",
      "sql" : "SELECT *\\nFROM\\n  base_tab\\n", => original view SQL
      "dialect" : "presto",
      "schema-id" : 1,
      "default-catalog" : "iceberg",
      "default-namespace" : [ "anorwood" ]
    } ],
  } ],
  "version-log" : [ { => Log of the created versions
    "timestamp-ms" : 1573518431292,
    "version-id" : 1
  } ],
  "schemas": [ """
    + _SCHEMA_1
    + """ ],
  "current-schema-id": 1
}"""
)

#: The same after the view was replaced; it also lacks the bracket that closes ``representations`` of version 2.
EXAMPLE_REPLACED = (
    """{
  "format-version" : 1,
  "location" : "s3n://my_company/my/warehouse/anorwood.db/common_view",
  "current-version-id" : 2,
  "properties" : {  => shows properties of the view
    "comment" : "View captures count of the data from the table"
  },
  "versions" : [ {
    "version-id" : 1,
    "parent-version-id" : -1,
    "timestamp-ms" : 1573518431292,
    "summary" : {
      "operation" : "create",
      "engineVersion" : "presto-350",
    },
    "representations" : [ {
      "type" : "sql",
      "sql" : "SELECT *\\nFROM\\n  base_tab\\n",
      "dialect" : "presto",
      "schema-id" : 1,
      "default-catalog" : "iceberg",
      "default-namespace" : [ "anorwood" ]
    } ],
    "properties" : { }
  }, {
    "version-id" : 2,
    "parent-version-id" : 1, => Version 2 was created on top of version 1, making parent-version-id 1
    "timestamp-ms" : 1573518440265,
    "summary" : {
      "operation" : "replace", => The 'replace' operation caused this latest version creation
      "engineVersion" : "spark-2.4.4",
    },
    "representations" : [ {
      "type" : "sql",
      "sql" : "SELECT \\"count\\"(*) my_cnt\\nFROM\\n  base_tab\\n", => Note the updated text from the 'replace' view
      "dialect" : "spark",
      "schema-id" : 2,
      "default-catalog" : "iceberg",
      "default-namespace" : [ "anorwood" ]
    },
  } ],
  "version-log" : [ {
    "timestamp-ms" : 1573518431292,
    "version-id" : 1
  }, {
    "timestamp-ms" : 1573518440265,
    "version-id" : 2
  } ],
  "schemas": [ """
    + _SCHEMA_1
    + """, { => Schema change is reflected here
    "schema-id": 2,
    "type" : "struct",
    "fields" : [ {
      "id" : 0,
      "name" : "my_cnt",
      "required" : false,
      "type" : "long",
      "doc" : ""
    } ]
  } ],
  "current-schema-id": 2
}"""
)


def cleaned(example: str) -> dict[str, Any]:
    """The example as JSON: without its notes and trailing commas, and with the missing bracket."""
    text = re.sub(r" *=>.*", "", example)
    text = text.replace('[ "anorwood" ]\n    },\n  } ]', '[ "anorwood" ]\n    } ]\n  } ]')
    parsed: dict[str, Any] = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    return parsed
