"""Simulations under their own import path; see `iceexplore.table`."""

from __future__ import annotations

from iceexplore.table import Simulation, empty, simulate

__all__ = ["Simulation", "empty", "simulate"]
