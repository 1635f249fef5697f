"""Draw nodes in layers with edges: Mermaid, Graphviz, SVG and text."""
