"""Materialized views, as the open proposal defines them (apache/iceberg pull request 11041)."""
