"""The doctor: what is broken in a table, since when, and what it means for readers."""

from iceexplore.doctor._check import check_options, examine
from iceexplore.doctor._tables import check_tables
from iceexplore.doctor._unopened import unopened
from iceexplore.doctor._untellable import UNTELLABLE
from iceexplore.doctor.model._finding import Finding, Since
from iceexplore.doctor.model._modes import MODES, Mode
from iceexplore.doctor.repair._plan import RepairPlan
from iceexplore.doctor.repair._step import Step, Unrepaired
from iceexplore.doctor.report._catalog_report import CatalogReport, TableCheck
from iceexplore.doctor.report._report import Report

__all__ = [
    "CatalogReport",
    "Finding",
    "MODES",
    "Mode",
    "RepairPlan",
    "Report",
    "Since",
    "Step",
    "TableCheck",
    "UNTELLABLE",
    "Unrepaired",
    "check_options",
    "check_tables",
    "examine",
    "unopened",
]
