"""One executor per step type."""
