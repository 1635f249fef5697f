"""The rules that each commit has to keep."""
