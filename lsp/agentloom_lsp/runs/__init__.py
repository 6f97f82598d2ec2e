"""Runs that are started from the editor: child processes with the same command line, what they tell, and what they leave behind."""
