"""The report of an examination, as text, HTML, JSON and data frames."""
