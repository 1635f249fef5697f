"""Convert a table's health for the browser: figures as blocks, with links to the files and rows that they count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from iceexplore.expressions import name_sql
from iceexplore.graph import TableState, amount, human_bytes
from iceexplore.widgets.core._blocks import Block, Part
from iceexplore.widgets.detail._table_views import shown_columns
from iceexplore.widgets.problems._findings import text_of

if TYPE_CHECKING:
    from iceexplore.doctor import FigureBar, HealthFigure, MetadataSize, Shown, TableHealth

__all__ = ["Links", "health_blocks", "unread_blocks"]

#: What the links may lead to: ``all`` tabs of the explorer, only ``tables`` (in a saved page), or ``none``.
Links = Literal["all", "tables", "none"]

#: The text to search for in a grid's column ``content``, by the values or operators of the conditions in `Shown.where`
#: on kinds of files. A saved page has no Python, so it can only search for text.
_CONTENT = {
    ("!=",): "delet",
    ("0",): "data",
    ("1", "not null"): "deletion vector",
    ("1", "null"): "position deletes",
    ("2",): "equality deletes",
}
_MAP, _RANGES = "map", "ranges"
#: The heading of the first column of each figure's table, by the figure's key.
_ROWS = {
    "sizes": "size",
    "deletes": "data files",
    "manifests": "manifest",
    "partitions": "partition",
    "clustering": "column",
}


def unread_blocks(size: MetadataSize, n: int) -> list[Block]:
    """Return the blocks to show before the manifests of a large snapshot are read.

    Parameters
    ----------
    n
        The number of the request that the button makes.
    """
    what = f"{amount(size.manifests, 'manifest')} ({human_bytes(size.size)})"
    read = _ask(f"Read {what}", {"do": "read"}, n)
    return [["h3", ["Not checked yet"]], ["p", ["The figures are computed from the snapshot's manifests. ", read]]]


def health_blocks(
    health: TableHealth, links: Links, n: int = 0, *, planning: bool = False, hidden: bool = False
) -> list[Block]:
    """Return blocks with the figures, what each rewrite would gain, and what was not checked.

    Parameters
    ----------
    n
        The number of the request that a button makes; 0 for no buttons. A gain that has not been planned gets a button
        or, without buttons, is planned now if the table has few files.
    planning
        Whether the missing gains are being planned; a note then replaces each of their buttons.
    hidden
        Leave out SQL statements, as they contain the table's name.
    """
    many = len(health.attention)
    headline = (
        f"{amount(many, 'figure')} {'needs' if many == 1 else 'need'} attention"
        if many
        else "No figure needs attention"
    )
    if health.missing:
        headline = f"Incomplete · {headline}" if many else "Incomplete"
    out: list[Block] = [
        ["h3", [headline]],
        ["advice", [f"S{health.scope[1:]}" if health.scan.roots else "No snapshot"]],
        *(["advice", [text_of(text)]] for text in health.caveats),
    ]
    for figure in health.measured:
        out += _figure(health, figure, links)
        if planning and not health.gain_known(figure.key):
            out.append(["advice", ["Computing what a rewrite would gain …"]])
        elif health.gain_known(figure.key) or (health.is_small and not n):
            out += _gain(health, figure, hidden=hidden)
        elif n:
            out.append(["p", [_ask("What would a rewrite gain?", {"do": "gain", "of": figure.key}, n)]])
    if n and len(health.measured) < len(health):
        out += [["h", ["Clustering"]], ["p", [_ask("Measure clustering", {"do": "clustering"}, n)]]]
    unchecked: list[list[Part]] = [[text_of(text)] for text in health.unchecked if text not in health.caveats]
    return [*out, ["h", ["Not checked"]], ["list", unchecked]]


def _figure(health: TableHealth, figure: HealthFigure, links: Links) -> list[Block]:
    title: list[Part] = [figure.title]
    if figure.attention:
        title = [["sign is-warning", ""], figure.title, ["badge", "needs attention"]]
    out: list[Block] = [["h", title]]
    there = _link(health.state, figure.show, links)
    out.append(["p", [*_verdict(figure), *([" ", ["set", "Show them", there]] if there else [])]])
    if figure.bars:
        scales = [
            max([v[0] for b in figure.bars if (v := b.values[i])] or [0]) or 1 for i in range(len(figure.columns))
        ]
        rows = [_row(health.state, figure, bar, scales, links) for bar in figure.bars]
        look = {"kind": "terms", "label": figure.title}
        out.append(["table", [[_ROWS[figure.key]], *([name] for name in figure.columns)], rows, look])
    return [*out, *(["advice", [text_of(text)]] for text in figure.notes)]


def _verdict(figure: HealthFigure) -> list[Part]:
    """Return the sentence about a figure, with a partition's value marked as a value, so that it can be redacted."""
    name = figure.bars[0].label if figure.key == "partitions" and figure.bars else ""
    before, found, after = figure.verdict.partition(name) if name else (figure.verdict, "", "")
    return [text_of(before), ["value", text_of(found)], text_of(after)] if found else [text_of(before)]


def _row(
    state: TableState, figure: HealthFigure, bar: FigureBar, scales: list[float], links: Links
) -> list[list[Part]]:
    label = text_of(bar.label)
    there = _link(state, bar.show, links)
    kind = "value" if figure.key == "partitions" else ""
    # The text of a link is not redacted, so a partition's value is not part of the link.
    name: list[Part] = [["set", label, there]] if there and not kind else [[kind, label]] if kind else [label]
    if kind and there:
        name += [" ", ["set", "show", there]]
    note: list[Part] = [" ", ["note", text_of(bar.note)]] if bar.note else []
    cells: list[list[Part]] = [
        [] if v is None else [v[1], ["bars", [["left", v[0] / scale]]]]
        for v, scale in zip(bar.values, scales, strict=True)
    ]
    return [[*name, *note], *cells]


def _gain(health: TableHealth, figure: HealthFigure, *, hidden: bool) -> list[Block]:
    gain = health.gain(figure.key)
    if gain is None:
        note = health.gain_note(figure.key)
        return [["advice", [text_of(note)]]] if note else []
    out: list[Block] = [["p", [text_of(gain.sentence)]]]
    if gain.sql and not hidden:
        out.append(["code", text_of(gain.sql)])
    return [*out, *(["advice", [text_of(text)]] for text in gain.notes)]


def _ask(text: str, request: dict[str, str], n: int) -> Part:
    return ["set", text, {"health_asked": {**request, "n": n}}]


def _link(state: TableState, shown: Shown | None, links: Links) -> dict[str, Any] | None:
    """Return the traits to set to show some rows; None if the widget cannot show them."""
    snapshot = None if state.snapshot is None else str(state.snapshot.snapshot_id)
    if shown is None or snapshot is None or links == "none":
        return None
    at = {"snapshot": snapshot, "against": ""}
    # A grid displays its filters, so their values must not have control characters, which could disguise the text.
    is_plain = all(text_of(value) == value for _, _, value in shown.where)
    if shown.instead is not None and (links == "tables" or not is_plain):
        shown = shown.instead
    if shown.table == _MAP:
        colored = {"selection": at, "file_color": "deletes", "file_filter": shown.of, "tab": "files"}
        return colored if links == "all" else None
    if shown.table == _RANGES:
        of = str(shown.of)
        made = {"scan_filter": f"{name_sql(of)} is not null", "scan_view": "ranges"}
        of_range = {"column": of, "by": "range"}
        return {"selection": at, **made, "scan_range_of": of_range, "tab": "scan"} if links == "all" else None
    if shown.of is not None:
        return {"selection": {**at, "node": f"manifest:{snapshot}:{shown.of}"}, "tab": "tree"}
    node = f"snapshot:{snapshot}"
    names = shown_columns(state, shown.table)
    query: dict[str, Any] = {"of": node, "table": shown.table}
    query["filters"] = [{"column": names.index(name), "op": op, "value": value} for name, op, value in _typed(shown)]
    if shown.largest is not None:
        query["sort"] = [names.index(shown.largest), "desc"]
    return {"selection": {**at, "node": node}, "query": query, "tab": "tree"}


def _typed(shown: Shown) -> list[tuple[str, str, str]]:
    """Return the conditions as filters of a grid, which shows the kinds of files as texts and searches those."""
    of_content = [one for one in shown.where if one[0] in ("content", "content_offset")]
    rest = [one for one in shown.where if one not in of_content]
    key = tuple(op if op[0] in "!n" else value for _, op, value in of_content)
    kind = _CONTENT.get(key, "")
    return [*([("content", "contains", kind)] if kind else of_content), *rest]
