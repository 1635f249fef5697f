"""The tree of a table: which nodes it has and what they say."""
