"""The form of the V4 layout in the commit lab, and the calls that apply it to a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any

from iceexplore.graph import TableState
from iceexplore.widgets.commit_lab._form import Call, Field, checked_values
from iceexplore.widgets.core._panel import TableLike

if TYPE_CHECKING:
    from iceexplore.commits import LayoutOptions

__all__ = ["layout_calls", "layout_fields", "pending_options", "start_of"]

_LABELS = {
    "dialect": "Dialect",
    "manifest_format": "Manifest format",
    "dv_encoding": "Changes of manifest DVs",
    "dv_attached": "Manifest DVs on the manifest's entry",
    "partition_storage": "Partition values",
    "flush_data_files": "Data files in the root",
    "flush_delete_files": "Deletes in the root",
    "leaf_entries": "Entries per leaf",
    "affinity": "Affinity of delete manifests",
    "unaffiliated_manifests": "Unaffiliated manifests",
    "affiliated_manifests": "Affiliated manifests per data manifest",
    "inline_dv_bytes": "Inline manifest DVs up to (bytes)",
    "compact_leaves": "Merge small leaves from",
    "rewrite_leaf_at": "Rewrite a leaf at (share removed)",
}
#: Labels of the empty choice, which leaves the decision to the table or the dialect.
_OPEN = {"dialect": "the table's", "manifest_format": "the dialect's"}


def pending_options(table: TableLike) -> LayoutOptions | None:
    """Return the options of a simulation whose first commit upgrades the table; None for any other table."""
    options: LayoutOptions | None = getattr(table, "options", None)
    state = getattr(table, "state", None)
    if options is None or state is None or options.format_version <= state.metadata.format_version:
        return None
    return options


def layout_fields(state: TableState, pending: LayoutOptions | None = None) -> tuple[Field, ...]:
    """Return fields for the format version and for each option of a V4 layout, with the option's documentation.

    Parameters
    ----------
    pending
        The options of the simulation that is explored (`pending_options`); they are the form's initial values.
    """
    from iceexplore.commits import LayoutOptions, option_docs

    version = state.metadata.format_version
    coming = version if pending is None else pending.format_version
    usual = LayoutOptions.of(coming)
    versions = [("", f"{version} (current)")] + [
        (str(v), f"{v} (simulation's)" if v == coming else f"{v} (upgrade first)") for v in range(version + 1, 5)
    ]
    text = "A higher version upgrades the table in the first commit. The options apply to version 4 only."
    chosen = "" if coming == version else str(coming)
    out = [Field("format_version", "Format version", "choice", chosen, text, tuple(versions))]
    v4 = ("4", *([""] if version == 4 else []))
    for option in option_docs(4):
        name, default, text = option.name, option.default, option.text
        label, when = _LABELS.get(name, name), ("format_version", v4)
        own = None if pending is None or not pending.has_layout else getattr(pending, name)
        own = None if own == getattr(usual, name) else own
        if own is not None:
            default = own
        if option.choices:
            free = [("", _OPEN[name])] if name in _OPEN else []
            choices = tuple(free + [(c, c) for c in option.choices])
            out.append(Field(name, label, "choice", "" if free and own is None else default, text, choices, when=when))
        elif isinstance(default, bool):
            out.append(Field(name, label, "flag", default, text, when=when))
        else:
            kind = "int" if isinstance(default, int) else "number"
            limits = {"least": option.least, "most": option.most}
            out.append(Field(name, label, kind, default, text, when=when, **limits))  # type: ignore[arg-type]
    return tuple(out)


def start_of(
    state: TableState, layout: Mapping[str, Any], pending: LayoutOptions | None = None
) -> tuple[int | None, dict[str, Any]]:
    """Return the start of a simulation: the format version (None for the table's) and the non-default options.

    Parameters
    ----------
    pending
        As in `layout_fields`.

    Raises
    ------
    OptionError
        A field is invalid.
    """
    from iceexplore.commits import LayoutOptions

    form = layout_fields(state)
    values = checked_values(form if pending is None else layout_fields(state, pending), layout)
    version = int(values.pop("format_version")) if values["format_version"] else None
    options = {f.name: values[f.name] for f in form[1:] if values[f.name] != f.default}
    LayoutOptions.of(version or state.metadata.format_version, **options)
    return version, options


def layout_calls(
    state: TableState, options: LayoutOptions, layout: Mapping[str, Any], pending: LayoutOptions | None = None
) -> tuple[Call, ...]:
    """Return the calls that change an existing simulation to this layout; empty if it has it already.

    Parameters
    ----------
    state
        The table's state from which the form was created.
    options
        The simulation's present options.
    pending
        As in `layout_fields`.

    Raises
    ------
    OptionError
        A field is invalid.
    """
    from iceexplore.commits import LayoutOptions

    version, given = start_of(state, layout, pending)
    version = max(options.format_version, version or 0)
    if not LayoutOptions.of(version).has_layout:
        if version == options.format_version:
            return ()
        return (Call("upgrade", (version,)),)
    if not options.has_layout:
        return (Call("upgrade", (version,), given),)
    same = {"dialect": given.get("dialect", options.dialect)}
    if same["dialect"] == options.dialect:
        same["manifest_format"] = options.manifest_format
    wanted = LayoutOptions.of(version, **{**same, **given})
    names = [f.name for f in fields_of(LayoutOptions) if f.name != "relaxed"]
    changed = {n: getattr(wanted, n) for n in names if getattr(wanted, n) != getattr(options, n)}
    return (Call("set_layout", (), changed),) if changed else ()
