"""The doctor: what is broken in a table, since when, and what it means for readers."""

from iceexplore.doctor._check import check_options, examine, examine_in_steps
from iceexplore.doctor._tables import check_tables
from iceexplore.doctor._unopened import unopened
from iceexplore.doctor._untellable import UNTELLABLE
from iceexplore.doctor._views import examine_view
from iceexplore.doctor.checks._files import verify_here
from iceexplore.doctor.figures._delete_groups import DELETE_GROUPS, files_of_group
from iceexplore.doctor.figures._figure import FigureBar, HealthFigure, HealthGain, Shown
from iceexplore.doctor.figures._health import MetadataSize, TableHealth, metadata_size
from iceexplore.doctor.maintenance._expire import ExpirePlan
from iceexplore.doctor.maintenance._maintenance import Maintenance
from iceexplore.doctor.maintenance._metadata_files import MetadataFilesPlan
from iceexplore.doctor.maintenance._orphans import OrphanPlan
from iceexplore.doctor.maintenance._plan import EngineCall, MaintenanceCost, Plan, Threshold
from iceexplore.doctor.maintenance._rewrite_data_files import RewriteDataFilesPlan
from iceexplore.doctor.maintenance._rewrite_deletes import RewritePositionDeletesPlan
from iceexplore.doctor.maintenance._rewrite_manifests import RewriteManifestsPlan
from iceexplore.doctor.maintenance._unused import UnusedPlan
from iceexplore.doctor.model._finding import EFFECTS, Finding, Since
from iceexplore.doctor.model._modes import MODES, Mode
from iceexplore.doctor.repair._plan import RepairPlan
from iceexplore.doctor.repair._plan_text import plan_heading, step_effect, step_instead, step_needed
from iceexplore.doctor.repair._step import Step, Unrepaired
from iceexplore.doctor.report._catalog_report import CatalogReport, TableCheck
from iceexplore.doctor.report._redact import redacted_report
from iceexplore.doctor.report._report import Report
from iceexplore.doctor.report._text import WORDS, finding_lines, report_headline, report_scope

__all__ = [
    "CatalogReport",
    "DELETE_GROUPS",
    "EFFECTS",
    "EngineCall",
    "ExpirePlan",
    "FigureBar",
    "Finding",
    "HealthFigure",
    "HealthGain",
    "MODES",
    "Maintenance",
    "MaintenanceCost",
    "MetadataFilesPlan",
    "MetadataSize",
    "Mode",
    "OrphanPlan",
    "Plan",
    "RepairPlan",
    "Report",
    "RewriteDataFilesPlan",
    "RewriteManifestsPlan",
    "RewritePositionDeletesPlan",
    "Shown",
    "Since",
    "Step",
    "TableCheck",
    "TableHealth",
    "Threshold",
    "UNTELLABLE",
    "Unrepaired",
    "UnusedPlan",
    "WORDS",
    "check_options",
    "check_tables",
    "examine",
    "examine_in_steps",
    "examine_view",
    "files_of_group",
    "finding_lines",
    "metadata_size",
    "plan_heading",
    "redacted_report",
    "report_headline",
    "report_scope",
    "step_effect",
    "step_instead",
    "step_needed",
    "unopened",
    "verify_here",
]
