"""Define the data of a plan: the data files to read, the deletes that apply to them, and groups of data files."""
