"""The data model of entries, headers and record shapes."""
