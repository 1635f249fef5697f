"""Show a plan as a card, tables, a tree or a waterfall, and compare it with another plan."""
