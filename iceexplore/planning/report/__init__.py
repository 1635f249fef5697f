"""Show a plan: card, tables, tree, waterfall and comparison."""
