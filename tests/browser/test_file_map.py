"""The files of a snapshot as cells: by mouse, by keyboard, and while the timeline plays."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import bare_page

pytestmark = pytest.mark.browser


def test_cells_open_their_files_and_follow_the_timeline(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    widget.tab = "files"
    with bare_page(browser, widget) as bare:
        bare.page.emulate_media(reduced_motion="reduce")
        files = bare.page.get_by_role("slider", name="File")
        assert files.get_attribute("aria-valuemax") == "24"
        files.focus()
        bare.press("End", "ArrowLeft")
        words = bare.page.locator(".ice-cell-words").inner_text()
        assert words == files.get_attribute("aria-valuetext")
        assert words.startswith("started_at_month=2024-05, start_station_bucket_2=1 · data file · ")
        bare.page.get_by_role("combobox", name="Shade by").select_option("deletes")
        bare.idle()
        assert "share of a file's rows" in bare.page.locator(".ice-cell-legend").inner_text()
        assert bare.violations() == []
        bare.page.get_by_role("button", name="Earlier snapshot").click()
        bare.idle()
        assert files.get_attribute("aria-valuemax") == "24"
        assert "removed" not in bare.page.locator(".ice-cell-legend").inner_text(), "a rewrite of manifests"
        files.focus()
        bare.press("Home", "Enter")
        assert widget.tab == "tree"
        assert widget.selected.kind == "data-file"
        assert widget.selected.fields["partition"] == {"started_at_day": "2024-03-01"}
