"""The one model of entries, headers and record shapes."""
