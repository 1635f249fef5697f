"""The health of a table: figures, the doctor's check and repair, and the list of problems."""
