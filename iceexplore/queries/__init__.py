"""Run views: evaluate their queries over any state of their tables, with DataFusion on this machine or on Spark."""

from iceexplore.queries._local import view_to_arrow
from iceexplore.queries._plan import ViewPlan, plan_view
from iceexplore.queries._spark import view_on_spark

__all__ = ["ViewPlan", "plan_view", "view_on_spark", "view_to_arrow"]
