"""Find the deletes that apply to each data file."""
