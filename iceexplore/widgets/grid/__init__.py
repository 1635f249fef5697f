"""The grid that shows tables in a widget."""
