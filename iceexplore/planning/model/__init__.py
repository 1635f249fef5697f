"""Define classes for the contents of a plan: data files to read, deletes that apply to them, groups of data files."""
