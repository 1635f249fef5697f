"""Repair plans: the steps that mend what an examination found, applied to a simulated table."""
