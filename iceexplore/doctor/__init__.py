"""The doctor: what is broken in a table, since when, and what it means for readers."""

from iceexplore.doctor._check import examine
from iceexplore.doctor.model._finding import Finding, Since
from iceexplore.doctor.report._report import Report

__all__ = ["Finding", "Report", "Since", "examine"]
