"""Health checks: nothing is damaged, but the table is slower or larger than necessary."""
