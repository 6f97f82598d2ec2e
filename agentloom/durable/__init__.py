"""Runs that survive their process: the journal beside a checkpoint."""
