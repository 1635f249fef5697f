from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from iceexplore.storage import Cache, Read, ReadLog


def test_least_recently_used_goes_first() -> None:
    cache = Cache(30)
    for key in "abc":
        cache.get_or_load((key,), lambda key=key: key, lambda _: 10)  # type: ignore[misc]
    cache.get_or_load(("a",), lambda: "never", lambda _: 10)
    cache.get_or_load(("d",), lambda: "d", lambda _: 10)
    assert ("a",) in cache and ("b",) not in cache and cache.bytes == 30


def test_a_value_above_the_limit_is_not_kept() -> None:
    cache = Cache(5)
    cache.get_or_load(("small",), lambda: b"1234", len)
    assert cache.get_or_load(("x",), lambda: b"123456", len) == b"123456"
    assert ("small",) in cache and len(cache) == 1 and cache.bytes == 4


def test_lowering_the_limit_drops() -> None:
    cache = Cache(100)
    cache.get_or_load(("x",), lambda: 1, lambda _: 60)
    cache.max_bytes = 50
    assert len(cache) == 0


def test_one_load_per_key_while_other_keys_go_on() -> None:
    cache = Cache(1000)
    loads: list[str] = []
    slow_started, release = threading.Event(), threading.Event()

    def slow() -> str:
        loads.append("slow")
        slow_started.set()
        assert release.wait(10)
        return "slow"

    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(cache.get_or_load, ("slow",), slow, lambda _: 1) for _ in range(5)]
        assert slow_started.wait(10)
        assert cache.get_or_load(("fast",), lambda: "fast", lambda _: 1) == "fast"
        release.set()
        assert [w.result(10) for w in waiting] == ["slow"] * 5
    assert loads == ["slow"]


def test_a_failed_load_is_tried_again_by_the_next() -> None:
    cache = Cache(1000)
    tries: list[int] = []

    def load() -> int:
        tries.append(1)
        time.sleep(0.05)
        if len(tries) == 1:
            raise ValueError("first")
        return 7

    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(cache.get_or_load, ("k",), load, lambda _: 1) for _ in range(2)]
        outcomes = sorted(str(r.exception() or r.result()) for r in results)
    assert outcomes == ["7", "first"]


def test_a_load_that_needs_its_own_key_does_not_hang() -> None:
    cache = Cache(1000)
    inner = lambda: cache.get_or_load(("k",), lambda: "inner", lambda _: 1)  # noqa: E731
    assert cache.get_or_load(("k",), inner, lambda _: 1) == "inner"


def test_many_threads() -> None:
    cache = Cache(500)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda i: cache.get_or_load((i % 97,), lambda: i % 97, lambda _: 10), range(4000)))
    assert values == [i % 97 for i in range(4000)]
    assert cache.bytes == 10 * len(cache) <= 500


def test_read_log() -> None:
    log = ReadLog()
    log.add(Read("<b>x", "/x", "manifest", 0, 100, 0.5))
    log.add(Read("y", "/y", "manifest", 0, 100, 0.0, cached=True))
    log.add(Read("z", "/z", "list", 0, 3, 0.1))
    assert len(log) == 3 and log.bytes == 100 and log.seconds == pytest.approx(0.6)
    assert [r.location for r in log.of_kind("manifest")] == ["<b>x"]
    frame = log.to_pandas()
    assert list(frame.columns) == ["location", "real", "kind", "offset", "length", "seconds", "cached"]
    assert len(frame) == 3
    assert "<b>" not in log._repr_html_() and "&lt;b&gt;x" in log._repr_html_()
    assert "3 reads, 100 bytes" in repr(log)
    log.clear()
    assert len(log) == 0 and list(log.to_pandas().columns) == list(frame.columns)


def test_a_lowered_limit_counts_only_in_its_block() -> None:
    cache = Cache(100)
    for number in range(10):
        cache.get_or_load((number,), lambda: "value", lambda _: 10)
    with cache.lowered(50):
        assert cache.bytes == 50
        with cache.lowered(20), cache.lowered(80):
            assert cache.bytes == 20
            cache.get_or_load(("new",), lambda: "value", lambda _: 10)
            assert (cache.bytes, ("new",) in cache) == (20, True)
        assert cache.max_bytes == 100
    with pytest.raises(KeyError), cache.lowered(0):
        raise KeyError
    assert cache.bytes == 0
    for number in range(10):
        cache.get_or_load((number,), lambda: "value", lambda _: 10)
    assert cache.bytes == 100
