"""The explorer of views in Chromium: by mouse and keyboard, for screen readers, and with hostile texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.browser.bare import bare_page
from tests.browser.harness import watched
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import hostile_view

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_versions_and_tabs(browser: Any, theme: Any) -> None:
    s = ix.simulate_view("SELECT a FROM t -- all", {"a": "long"}, dialect="spark")
    s.replace("SELECT a FROM t\nWHERE a > 1", dialect="spark")
    s.rollback(1)
    with bare_page(browser, s.explore(open_sources=False), theme=theme) as bare:
        page, w = bare.page, bare.widget
        versions = page.get_by_role("tablist", name="Versions").get_by_role("tab")
        assert [one.split("\n")[0] for one in versions.all_inner_texts()] == ["v1", "v2", "v1"]
        assert "rolled back" in versions.last.get_attribute("aria-label")
        assert page.locator(".ice-sql-keyword").all_inner_texts() == ["SELECT", "FROM"]
        versions.last.focus()
        bare.press("ArrowLeft")
        assert w.entry == 1 and page.locator(".ice-sql-keyword").all_inner_texts() == ["SELECT", "FROM", "WHERE"]
        page.get_by_role("combobox", name="Translate into").select_option("duckdb")
        bare.idle()
        assert "translated from spark by sqlglot, not stored" in page.locator(".ice-view-content h3").first.inner_text()
        assert bare.violations() == []
        versions.first.click(modifiers=["Shift"])
        bare.idle()
        assert (w.tab, w.against, w.entry) == ("compare", 0, 1)
        row = page.get_by_role("row", name="added WHERE a > 1")
        assert row.get_by_role("cell").all_inner_texts() == ["", "WHERE a > 1"]
        assert bare.violations() == []
        for tab in ("Lineage", "Problems", "Details") if theme == "dark" else ():
            page.get_by_role("tab", name=tab).click()
            bare.idle()
            assert bare.violations() == []
            if tab == "Lineage":
                image = page.locator(".ice-drawing img:visible")
                assert image.count() == 1 and image.evaluate("(one) => one.decode().then(() => one.naturalWidth)") > 300
        assert bare.end()["model"] == 0


def test_hostile_views(browser: Any, tmp_path: Path) -> None:
    text = "".join(value for value in HOSTILE.values() if "\ud800" not in value)
    with bare_page(browser, hostile_view(text, tmp_path / "v").explore()) as bare:
        seen = watched(bare.page)
        for tab in ("SQL", "Compare", "Lineage", "Problems", "Details"):
            bare.page.get_by_role("tab", name=tab).click()
            bare.idle()
            for summary in bare.page.locator(".ice-rest summary").all():
                summary.click()
            foreign = "script, iframe, object, foreignObject, b:text-is('bold'), a[href], img:not(.ice-drawing > img)"
            assert bare.page.locator(foreign).count() == 0
        assert seen == []
