"""Text and context to a checked document: the one door to everything that reads a workflow."""
