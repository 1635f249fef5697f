"""The notebook of scan plans in a real JupyterLab: its pictures are there, in the colours of light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.harness import ROOT, LabServer, NotebookPage, notebook_page

pytestmark = pytest.mark.browser

PICTURES = {
    "p.tree()": (800, 300),
    "p.waterfall()": (600, 200),
    "q.tree()": (800, 200),
    "r.story()": (300, 80),
    'sessions.plan("session': (600, 200),
    "i.tree()": (600, 150),
    't.plan().distribution(by="partition")': (500, 200),
    'four.plan("trip_id = 95").tree()': (800, 300),
}
#: The lightness of a picture's own paper, 0 to 255, and how many colours it has.
_LOOK = """async node => {
  await node.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [node.naturalWidth, node.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(node, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Map();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 250) continue;
    const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
    seen.set(colour, (seen.get(colour) || 0) + 1);
  }
  const paper = [...seen].sort((a, b) => b[1] - a[1])[0][0];
  const lightness = ((paper >> 16) + (paper >> 8 & 255) + (paper & 255)) / 3;
  return [node.naturalWidth, node.naturalHeight, lightness, seen.size];
}"""


@pytest.fixture(scope="module")
def ran(lab: LabServer, browser: Any) -> Iterator[NotebookPage]:
    """The notebook with every cell run; afterwards no other host was asked, and nothing complained."""
    with notebook_page(lab, browser) as page:
        page.open(ROOT / "notebooks" / "05_scan_plans.ipynb")
        page.run_all()
        yield page
        page.assert_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_are_visible_in_both_themes(ran: NotebookPage, theme: Any) -> None:
    ran.theme(theme)
    for source, (least_width, least_height) in PICTURES.items():
        picture = ran.output(source).locator("img").first
        width, height, lightness, colours = picture.evaluate(_LOOK)
        assert (width >= least_width, height >= least_height) == (True, True), (source, width, height)
        assert lightness > 240 if theme == "light" else lightness < 40, (source, lightness)
        assert colours > 15, source
        box = picture.bounding_box()
        assert box["width"] >= 0.7 * width or box["width"] > 600, source  # it shrinks, and scrolls sideways below that


def test_the_plan_as_text_unfolds(ran: NotebookPage) -> None:
    output = ran.output("p.tree()")
    lines = output.locator("details pre")
    assert not lines.is_visible()
    output.locator("summary").click()
    assert "⊘" in lines.inner_text() and "partition: started_at_month is 2024-04" in lines.inner_text()
    assert ran.contrast(lines) >= 4.5


def test_cards_and_errors_are_shown(ran: NotebookPage) -> None:
    assert "1 of 2" in ran.output("p = t.plan(").inner_text()
    caret = ran.output("ridr").inner_text().rstrip("\n").split("\n")[-1]
    assert caret.strip() == "^^^^"
    assert "sort by rider" in ran.output(".advice()").inner_text()
