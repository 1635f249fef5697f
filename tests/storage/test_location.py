from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.storage import canonical, path_only, same_location
from iceexplore.storage._location import relative_to, within


@pytest.mark.parametrize(
    ("spelled", "place"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("//a//b/./c", "/a/b/c"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:/a", "/a"),
        ("file://data/t", "data/t"),  # two slashes: a writer's bug, meant as a relative path
        ("file://./warehouse/t", "warehouse/t"),
        ("./t", "t"),
        ("a/../../etc", "../etc"),
        ("/t/../../../etc/passwd", "/etc/passwd"),
        ("s3://b/t/", "s3://b/t"),
        ("s3a://b/t", "s3://b/t"),
        ("s3n://b/t", "s3://b/t"),
        ("gcs://b/t", "gs://b/t"),
        ("s3://b/t//m", "s3://b/t//m"),  # an object store's key, where slashes count
        ("s3://b/t/../x", "s3://b/x"),
        ("s3://b/../../x", "s3://b/x"),
        ("hdfs:/t", "hdfs:///t"),
        ("hdfs://h:8020/t", "hdfs://h:8020/t"),
        ("s3://b", "s3://b"),
        ("ts:2024/x", "ts:2024/x"),  # no scheme: a partition value with a colon
        ("/a%20b", "/a%20b"),
        ("", "."),
    ],
)
def test_spellings(spelled: str, place: str) -> None:
    assert canonical(spelled) == place


def test_path_only_drops_scheme_and_authority() -> None:
    assert path_only("hdfs://localhost:20500/wh/t") == path_only("/wh/t") == "/wh/t"


def test_same_location() -> None:
    assert same_location("file:/x/y", "/x//y")
    assert not same_location("s3://a/x", "s3://b/x")


def test_a_prefix_ends_at_a_slash() -> None:
    assert relative_to("/a/bc", "/a/b") is None
    assert relative_to("/a/b/c", "/a/b") == "c"
    assert relative_to("/a", "/a") == ""
    assert relative_to("/a/b", "/") == "a/b"
    assert not within("s3://bucket2/x", "s3://bucket")
    assert not within("../x", ".")


@given(st.text(alphabet="ab./:%é\\", max_size=30))
def test_canonical_is_stable_and_never_fails(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once


@given(st.lists(st.sampled_from(["..", ".", "a", "b", ""]), max_size=12))
def test_dots_never_lead_out_of_a_prefix_unnoticed(parts: list[str]) -> None:
    place = canonical("/root/t/" + "/".join(parts))
    if within(place, "/root/t"):
        assert ".." not in place.split("/")
