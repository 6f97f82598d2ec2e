"""Refactorings: changes of a workflow's text that keep what it does. Each is checked before it is handed out."""
