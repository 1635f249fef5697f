"""Tree diagrams in the style of the V4 proposal's figures."""
