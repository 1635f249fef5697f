"""Secrets: blanked whatever their form, and nothing of Iceberg's own is taken for one."""

from __future__ import annotations

import json

import pytest

import iceexplore as ix
from iceexplore.graph import blank_secrets, is_secret_name
from tests.helpers.hangs import ends

SECRETS = [
    "Basic dXNlcjpodW50ZXIy",
    "Authorization: Bearer hunter2hunter2",
    'PlainLoginModule required username="me" password="hunter2; hunter2";',
    "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=hunter2==;EndpointSuffix=x",
    "Server=h;Uid=me;Pwd={hunter2;hunter2};Database=x",
    "password = hunter2",
    "uri=https://host/x?password=hunter2&y=1",
    "see https://me:hunter2@host/x",
    "postgresql://me:p@hunter2@host/x",
    "https://host/x?sig=hunter2",
    "s3://b/k?X-Amz-Credential=hunter2&X-Amz-Date=1&X-Amz-Signature=hunter2",
    "https://hooks.slack.com/services/T00/B00/hunter2",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2 cut he…",
    '{"app.secret": "hunter2", "operation": "append"}',
    '{"app.secret": "hunter2 cut he…',
    r"{\"password\":\"a\\\"hunter2\",\"x\":\"y\"}",
    "key AKIAHUNTER2HUNTER2AB end",
    "eyJhbGciOiJIUzI1NiJ9.eyJodW50ZXIyIjoxfQ.hunter2",
    "ya29.hunter2",
    "xoxb-1-hunter2",
    "ghp_hunter2hunter2",
    "github_pat_hunter2_hunter2",
    "password: hunter2",
    "spark-submit --password hunter2 --name x",
    "s3://KEY:a/hunter2@bucket/x",
    "https://host/x?y=hunter2",
    "hive.metastore.client.auth=hunter2",
]
#: What a table says of itself, and columns with names of secrets.
OWN = [
    "s3://bucket/warehouse/token=1/metadata/00001-5eyJ.metadata.json",
    "abfss://container@account.dfs.core.windows.net/warehouse/x",
    "struct<password: string, token: int>",
    json.dumps({"type": "struct", "fields": [{"id": 1, "name": "password", "required": False, "type": "string"}]}),
    '[{"name": "token", "transform": "identity", "source-id": 1, "field-id": 1000}]',
    '{"uri": "https://host", "email": "me@example.com"}',
    "Basic statistics of a column; bearer certificates",
    "partition-key=bucket[16]; sort keys: id ASC NULLS FIRST; key_metadata=0x00",
    "ASIAPACIFICREGION xoxo-love",
    "1: token: optional string, 2: password: decimal(9, 2)",
    "s3://bucket:9000/warehouse/me@example.com/x",
]
NAMES = ["header.Authorization", "x.bearer", "k.passphrase", "sasl.jaas.config", "db.pass", "dbPwd", "x.creds"]
NAMES += ["key", "pin", "hive.metastore.client.auth", "sse.key"]
NAMES += ["s3.secret-access-key", "adls.sas-token.x", "s3.sse.key", "gcs.decryption-key", "AccountKey", "x-api-key"]
OWN_NAMES = ["partition-key", "key_metadata", "key-id", "encryption.key-id", "encryption-keys", "sort-key"]
OWN_NAMES += ["encrypted-key-metadata", "identifier-field-ids", "compass", "design", "rest.auth.type", "s3.signer.uri"]


@pytest.mark.parametrize("text", SECRETS)
def test_blanked(text: str) -> None:
    blanked = blank_secrets(text)
    assert "hunter2" not in blanked.lower() and "REDACTED" in blanked
    assert "dW50ZXIy" not in blanked, "not in base64 either"


@pytest.mark.parametrize("text", OWN)
def test_what_is_no_secret_stays(text: str) -> None:
    assert blank_secrets(text) == text


def test_names() -> None:
    assert [name for name in NAMES if not is_secret_name(name)] == []
    assert [name for name in OWN_NAMES if is_secret_name(name)] == []


def test_the_schema_of_a_table_stays() -> None:
    metadata = ix.sample("trips").metadata.raw
    text = json.dumps({key: metadata[key] for key in ("schemas", "partition-specs", "sort-orders", "snapshots")})
    assert blank_secrets(text) == text


def test_no_text_takes_long() -> None:
    starts = ["token", "a.", 'token=\\"', "-----BEGIN PRIVATE KEY", "://", "basic   ", "eyJaaaaaa.aaaa", "a= ", "\\"]
    for start in starts:
        with ends(20):
            blank_secrets(start * (200_000 // len(start)))
