"""Pictures of graphs: plain data in, positions, SVG, Mermaid, DOT and JSON out. Knows nothing of workflow files."""
