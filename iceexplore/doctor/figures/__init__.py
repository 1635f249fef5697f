"""The health of a table in figures, with what each rewrite would gain."""
