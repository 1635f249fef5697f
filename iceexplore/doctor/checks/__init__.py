"""The checks: each looks for one kind of fault in the examined parts of a table, and reports what it finds."""
