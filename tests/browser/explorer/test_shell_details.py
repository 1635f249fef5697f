"""The shell around every widget: where the focus goes, widths, writing directions, forced colours, paper, no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import StorageError
from iceexplore.widgets import Explorer, Timeline
from iceexplore.widgets.tree._forest import Forest
from tests.browser.bare import BarePage, bare_page
from tests.browser.explorer.test_explorer import notebook_of
from tests.widgets.test_timeline_panel import branch, snapshot, with_snapshots

pytestmark = pytest.mark.browser

_FOCUS = """() => {
  const { tagName, ariaLabel, textContent, className } = document.activeElement;
  return tagName === "BODY" ? "" : ariaLabel ?? (className || textContent);
}"""
_WIDTHS = "[...document.querySelectorAll('.ice-widget')].map((one) => Math.round(one.getBoundingClientRect().width))"


def focused(page: Any) -> str:
    """What has the focus; nothing where the page has it."""
    return str(page.evaluate(_FOCUS))


def test_the_focus_stays_in_the_widget(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        page = bare.page
        page.locator(".ice-trail button", has_text="trips").focus()
        bare.press("Enter")
        assert widget.selection["node"] == "table"
        assert page.evaluate("document.activeElement.ariaCurrent") == "location"

        widget.select(snapshot=widget.snapshots[2]["id"], against=widget.snapshots[4]["id"])
        bare.push()
        page.get_by_role("button", name="Stop comparing").focus()
        bare.press("Enter")
        assert widget.selection["against"] == ""
        assert page.evaluate("document.activeElement.ariaCurrent") == "location"

        widget.select(f"snapshot:{widget.snapshots[1]['id']}")
        bare.push()
        page.locator(".ice-rest summary").click()
        page.locator(".ice-rest .ice-why").first.focus()
        widget.select(f"snapshot:{widget.snapshots[2]['id']}")
        bare.push()  # more fields are folded again: the element with the same name takes no focus
        assert focused(page) == "ice-head"

        page.get_by_role("button", name="Save the picture").focus()
        bare.press("Enter")
        page.get_by_role("button", name="PNG: Tree").focus()
        page.evaluate("document.body.addEventListener('click', (e) => (window.iceSaved = e.target.download))")
        with page.expect_download():
            bare.press("Enter")
        assert focused(page) == "Save the picture"
        # VS Code's notebooks save what they see clicked in their page (handleInnerClick of webviewPreloads.ts)
        assert page.evaluate("window.iceSaved") == "trips-tree.png"

        page.get_by_role("button", name="Earlier snapshot").focus()
        bare.press("Enter", "Enter")
        assert widget.selection["snapshot"] == widget.snapshots[0]["id"]
        assert focused(page) == "Earlier snapshot"
        assert page.evaluate("document.activeElement.ariaDisabled") == "true"
        bare.press("Enter")
        assert widget.selection["snapshot"] == widget.snapshots[0]["id"]

        page.evaluate("window.ice.update({ busy: 'Reading' })")
        page.get_by_role("button", name="Cancel").focus()
        page.evaluate("window.ice.update({ busy: '' })")
        page.wait_for_timeout(100)
        assert focused(page) == "ice-table-name"


def test_what_could_not_be_read_is_asked_for_again(browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        last = widget.selection["snapshot"]
        line = bare.page.get_by_role("slider", name="Snapshot")

        def fail(*_: Any) -> Any:
            raise StorageError("the line is dead")

        with monkeypatch.context() as patch:
            patch.setattr(Forest, "grow", fail)
            line.focus()
            bare.press("Home")
        first = widget.snapshots[0]["id"]
        assert (widget.selection["snapshot"], "dead" in widget.error["text"]) == (first, True)
        assert f"snapshot:{first}" not in widget.nodes
        bare.press("Home")
        assert f"snapshot:{first}" in widget.nodes
        assert bare.page.locator(".ice-error").is_hidden()

        # what Python takes back, as when somebody cancelled, can be asked for again
        bare.page.evaluate(
            "(last) => window.ice.update({ selection: { ...window.ice.state.selection, snapshot: last } })", last
        )
        assert line.get_attribute("aria-valuenow") == "12"
        bare.press("Home")
        assert line.get_attribute("aria-valuenow") == "1"


#: Notes where rounded rectangles (of the timeline: flags) and texts are painted.
_PAINTED = """() => {
  const { prototype } = CanvasRenderingContext2D;
  window.painted = { flags: [], directions: new Set() };
  const [flag, text] = [prototype.roundRect, prototype.fillText];
  prototype.roundRect = function (x, y, w, h, ...rest) {
    if (this.canvas.className === "ice-line-canvas") window.painted.flags.push([x, y, x + w]);
    return flag.call(this, x, y, w, h, ...rest);
  };
  prototype.fillText = function (...given) {
    const own = this.direction;
    window.painted.directions.add(own === "inherit" ? getComputedStyle(this.canvas).direction : own);
    return text.apply(this, given);
  };
}"""


def test_a_flag_is_beside_its_mark(browser: Any) -> None:
    snapshots = [snapshot(1, None), snapshot(2, 1), snapshot(3, 1)]
    refs = dict([branch("main", 2), branch("experiments", 3)])
    with bare_page(browser, Timeline(with_snapshots(ix.sample("trips").state, snapshots, refs, 2))) as bare:
        bare.page.evaluate(_PAINTED)
        bare.page.locator(".ice-axis").focus()
        bare.press("Home")
        width = bare.page.locator(".ice-axis").bounding_box()["width"]
        right = max(end for _, top, end in bare.page.evaluate("window.painted.flags") if top > 10)
        assert right < width - 30 - 8, "left of the last mark, with its ring"
        assert bare.page.locator(".ice-axis").evaluate("(one) => getComputedStyle(one).outlineOffset") == "0px"


def shown(bare: BarePage, part: str) -> Any:
    bare.page.locator(f".ice-part[data-part={part}]").click()
    bare.page.wait_for_selector(f".ice-part-panel[id$='-{part}'] section, .ice-part-panel[id$='-{part}'] .ice-panes")
    return bare.page.locator(f".ice-part-panel[id$='-{part}']").bounding_box()


def test_each_part_has_the_same_room(browser: Any) -> None:
    """What is below the explorer does not jump; and what a form does is in sight, however long the form is."""
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        parts = ("problems", "deletes", "rows", "scan", "commit", "tree")
        assert {shown(bare, part)["height"] for part in parts} == {560}
        shown(bare, "scan")
        page.locator(".ice-scan-input:visible").fill("rider = 'guest'")
        bare.press("Enter")
        page.locator(".ice-scan-answer > ul").wait_for()
        assert {shown(bare, part)["height"] for part in ("scan", "tree")} == {560}, "with a plan, too"
        commit = shown(bare, "commit")
        button = page.locator(".ice-commit-form").get_by_role("button", name="Apply", exact=True)
        place = button.bounding_box()
        assert place["y"] + place["height"] <= commit["y"] + commit["height"]
        figure = page.locator(".ice-commit-figure:visible").bounding_box()
        assert figure["y"] <= commit["y"] + commit["height"] / 2, "most of it is in sight; the pane scrolls to the rest"
        button.click()
        page.locator(".ice-commit-figure img").first.wait_for()
        page.set_viewport_size({"width": 700, "height": 1000})
        assert {shown(bare, part)["height"] for part in parts} == {500}, "in a narrow cell, too"
        assert shown(bare, "scan") and page.locator(".ice-scan:visible").bounding_box()["height"] >= 500


def test_right_to_left_narrow_and_forced_colours(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        assert {shown(bare, part)["height"] for part in ("problems", "deletes", "tree")} == {560}
        assert page.locator(".ice-mini").is_visible()
        trail = page.locator(".ice-trail :is(span, button)").evaluate_all(
            "all => all.map((one) => getComputedStyle(one).paddingLeft)"
        )
        assert set(trail) == {"4px"}
        head = page.locator(".ice-head")
        assert head.evaluate("(one) => one.scrollHeight > one.clientHeight"), "more than there is room for"
        assert "gradient" in head.evaluate("(one) => getComputedStyle(one).backgroundImage")

        page.evaluate("document.documentElement.dir = 'rtl'")
        page.evaluate(_PAINTED)
        page.get_by_role("button", name="Zoom into the tree").click()
        page.locator(".ice-axis").focus()
        bare.press("ArrowLeft")
        assert page.evaluate("[...window.painted.directions]") == ["ltr"]
        assert page.locator(".ice-top").evaluate("(one) => getComputedStyle(one).direction") == "ltr"
        page.evaluate("document.documentElement.dir = 'ltr'")

        # a relative location is cut at its front, like any other
        page.get_by_role("tab", name="Manifests", exact=True).click()
        bare.idle()
        names = [f"data/persistent/equality_delete/warehouse/ns/t/metadata/{i}-manifest.avro" for i in range(2)]
        page.evaluate(
            """(names) => {
              const { detail, ...others } = window.ice.state.pages;
              const rows = names.map((name, i) => detail.rows[i].with(0, name));
              window.ice.update({ pages: { ...others, detail: { ...detail, rows, total: 2 } } });
            }""",
            names,
        )
        bare.idle()
        page.wait_for_timeout(100)
        cells = page.locator(".ice-detail tbody th")
        assert [text[-15:] for text in cells.all_inner_texts()] == [name[-15:] for name in names]
        assert [cell.get_attribute("title") for cell in cells.all()] == names

        page.set_viewport_size({"width": 700, "height": 900})
        page.wait_for_timeout(200)
        words = page.locator(".ice-words-line")
        assert words.evaluate("(one) => one.scrollWidth <= one.clientWidth"), "all of what a snapshot did"
        page.set_viewport_size({"width": 340, "height": 900})
        page.wait_for_timeout(200)
        assert page.locator(".ice-mini").is_hidden()
        for tab in page.locator(".ice-part, .ice-tab").locator("visible=true").all():
            box = tab.bounding_box()
            assert box["x"] >= 12 and box["x"] + box["width"] <= 340 - 12
        assert bare.violations() == []

        page.emulate_media(forced_colors="active")
        shown(bare, "commit")
        go = page.locator(".ice-go").first
        assert go.evaluate("(one) => getComputedStyle(one).forcedColorAdjust") == "none", "no paper behind its text"
        text, paper = go.evaluate("(one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]")
        assert text != paper


def test_on_paper(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        bare.page.wait_for_selector(".ice-detail tbody tr")
        page.emulate_media(media="print")
        controls = ".ice-tools, .ice-grid-bar, .ice-select, .ice-mini, .ice-copy, .ice-pager .ice-button"
        assert page.locator(controls).locator("visible=true").count() == 0
        assert page.locator(".ice-trail:visible button").count() == 2
        assert page.locator(".ice-tree").evaluate("(one) => getComputedStyle(one).opacity") == "1"
        cut = page.evaluate(
            """[...document.querySelectorAll(".ice-head, .ice-panel, .ice-tree, .ice-detail, .ice-panes")]
              .filter((one) => getComputedStyle(one).overflowY !== "visible" || one.scrollHeight > one.clientHeight + 4)
              .map((one) => one.className)"""
        )
        assert cut == []
        assert page.locator(".ice-detail .ice-table").bounding_box()["width"] <= 940
        page.emulate_media(media="screen")
        page.get_by_role("tablist", name="Tables").get_by_role("tab", name="Files").click()
        page.locator(".ice-table thead th", has_text="file_path").wait_for()  # before, the menu is of other columns
        menu = page.locator(".ice-detail .ice-menu summary", has_text="Columns")
        menu.click()
        page.locator(".ice-detail .ice-menu-list input").first.wait_for()  # made once it is open
        for place in range(page.locator(".ice-detail .ice-menu-list input").count()):
            page.locator(f".ice-detail .ice-menu-list input[data-key='{place}']").check()
            bare.idle()
        menu.click()
        page.locator(".ice-table thead th", has_text="readable_metrics").wait_for()
        page.locator(".ice-table tbody tr").nth(21).wait_for(state="attached")
        page.emulate_media(media="print")
        assert page.locator(".ice-detail .ice-table").bounding_box()["width"] <= 940
        heights = page.evaluate("[...document.querySelectorAll('.ice-table tbody tr')].map((one) => one.offsetHeight)")
        assert max(heights) < 100, "of twenty columns too a row is a few lines"
        boxes = "thead => [...thead.querySelectorAll('button')].filter((one) => one.getClientRects().length).length"
        head = page.locator(".ice-detail .ice-table thead")
        assert head.evaluate(boxes) == 0, "Chromium repeats no header on the next page that has a button's box"
        assert "readable_metrics" in head.inner_text()


def test_where_jupyterlab_is_not(browser: Any) -> None:
    cases = [
        ("body.dataset.vscodeThemeKind = 'vscode-dark'", "light", "dark"),
        ("body.dataset.vscodeThemeKind = 'vscode-light'", "dark", "light"),
        ("documentElement.setAttribute('theme', 'dark')", "light", "dark"),  # Colab
        ("documentElement.dataset.theme = 'light'", "dark", "light"),
        ("body.style.color = '#eee'", "light", "dark"),
        ("body.style.color = '#111'", "dark", "light"),  # nbconvert's classic pages
    ]
    with bare_page(browser, Timeline(ix.sample("trips"))) as bare:
        # the bundle that VS Code, Colab and nbconvert show widgets with has this, whatever the theme
        bare.page.add_style_tag(content=":root { --jp-layout-color0: white; }")
        for where, system, theme in cases:
            bare.page.emulate_media(color_scheme=system)
            bare.page.evaluate(
                f"""() => {{
                  delete document.body.dataset.jpThemeLight;
                  document.{where};
                }}"""
            )
            widget = bare.page.locator(f".ice-widget[data-ice-theme='{theme}']")
            widget.wait_for(timeout=2_000)
            paper = widget.evaluate("(one) => getComputedStyle(one).backgroundColor")
            assert paper == ("rgb(17, 22, 29)" if theme == "dark" else "rgb(255, 255, 255)"), where
            bare.page.evaluate(
                """() => {
                  delete document.body.dataset.vscodeThemeKind;
                  delete document.documentElement.dataset.theme;
                  document.documentElement.removeAttribute("theme");
                }"""
            )


def test_no_white_frame_in_vs_code(browser: Any) -> None:
    with bare_page(browser, Timeline(ix.sample("trips"))) as bare:
        # what it puts each widget in, and says of these, whatever the theme
        bare.page.add_style_tag(content=".cell-output-ipywidget-background { background: white !important; }")
        behind = bare.page.evaluate(
            """() => {
              const host = document.querySelector(".ice-host");
              const boxes = [0, 1, 2].map(() => document.createElement("div"));
              for (const box of boxes) box.className = "cell-output-ipywidget-background";
              const [output, area, others] = boxes;
              others.innerHTML = "<label>Black on white, as ipywidgets has it</label>";
              host.replaceWith(output, others);
              output.append(area);
              area.append(host);
              return boxes.map((box) => getComputedStyle(box).backgroundColor);
            }"""
        )
        assert behind == ["rgba(0, 0, 0, 0)", "rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"]


def test_more_contrast_where_it_is_asked_for(browser: Any) -> None:
    colours = """() => {
      const probe = document.createElement("span");
      document.querySelector(".ice-widget").append(probe);
      const found = ["ink", "muted", "accent"].map((name) => {
        probe.style.color = `var(--ice-${name})`;
        return getComputedStyle(probe).color;
      });
      probe.remove();
      return found;
    }"""
    with bare_page(browser, Timeline(ix.sample("trips"))) as bare:
        page, body = bare.page, bare.page.locator("body")
        body.evaluate("(body) => delete body.dataset.jpThemeLight")
        for kind, accent in (("dark", "rgb(143, 220, 255)"), ("light", "rgb(0, 79, 124)")):
            plain = "(body, kind) => { body.className = body.dataset.vscodeThemeKind = `vscode-${kind}`; }"
            body.evaluate(plain, kind)
            ink, muted, _ = page.evaluate(colours)
            assert ink != muted
            page.emulate_media(contrast="more")
            page.locator(".ice-widget[data-ice-contrast]").wait_for(timeout=2_000)
            assert page.evaluate(colours) == [ink, ink, accent], "as the system asks"
            page.emulate_media(contrast="no-preference")
            page.locator(".ice-widget:not([data-ice-contrast])").wait_for(timeout=2_000)
            # VS Code's names for its themes of high contrast: the system has not been asked
            body.evaluate("(body) => { body.className += ' vscode-high-contrast'; }")
            page.locator(".ice-widget[data-ice-contrast]").wait_for(timeout=2_000)
            assert page.evaluate(colours) == [ink, ink, accent], "as VS Code's theme asks"


def test_a_page_made_of_kept_state(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        # what nbconvert's pages give a widget: models that have never had a comm
        bare.page.evaluate("window.ice.state.layout = { comm_live: false }")
        line = bare.page.get_by_role("slider", name="Snapshot")
        line.focus()
        bare.press("Home")
        assert "kernel has ended" in bare.page.locator(".ice-error").first.inner_text()
        assert line.get_attribute("aria-valuenow") == "12", "like the tree and the details"
        bare.page.locator(".ice-part[data-part=scan]").click()
        assert bare.page.get_by_text("Not loaded: the kernel has ended.").is_visible()


def test_beside_each_other_and_without_a_kernel(notebook: Any, tmp_path: Path) -> None:
    notebook.open(
        notebook_of(
            tmp_path / "n.ipynb",
            "import iceexplore as ix, ipywidgets as W\nt = ix.sample('trips')",
            "lines = [ix.widgets.Timeline(t) for _ in range(5)]",
            "W.VBox([W.HBox(lines[:2]), W.VBox(lines[2:3], layout=W.Layout(align_items='center')),"
            " W.HBox([W.Accordion(lines[3:4], selected_index=0)]), lines[4]])",
            "t.explore()",
        )
    )
    notebook.run_all()
    page = notebook.page
    page.wait_for_function("document.querySelectorAll('.ice-widget').length === 6")
    page.wait_for_selector(".ice-explorer")
    one, other, centred, folded, alone, explorer = page.evaluate(_WIDTHS)
    assert one == other > 0.45 * alone
    assert centred == pytest.approx(alone, abs=8)
    assert folded > 320
    assert explorer > 900, "an ordinary widget has all the room"

    widget = page.locator(".ice-widget", has=page.locator(".ice-explorer"))
    line = widget.get_by_role("slider", name="Snapshot")
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.shutdown()")
    page.wait_for_timeout(500)
    line.focus()
    page.keyboard.press("Home")
    widget.locator(".ice-error", has_text="kernel has ended").wait_for(timeout=15_000)
    page.wait_for_timeout(300)
    assert line.get_attribute("aria-valuenow") == "12", "like the tree and the details"
    notebook.errors.clear()  # JupyterLab says that its connection is gone; from here on nothing is sent
    page.keyboard.press("Home")
    page.wait_for_timeout(300)
    assert line.get_attribute("aria-valuenow") == "12"
    widget.locator(".ice-part[data-part=scan]").click()
    assert widget.get_by_text("Not loaded: the kernel has ended.").is_visible()
    assert widget.get_by_text("Loading …").is_hidden()
