"""What a run leaves behind: its journal while it goes on, its checkpoint when it ends, and how both are found again."""

from agentloom.core.keeping.runs import INTERRUPTED, journal_of, load_run, paused_run, redacted_in

__all__ = ["INTERRUPTED", "journal_of", "load_run", "paused_run", "redacted_in"]
