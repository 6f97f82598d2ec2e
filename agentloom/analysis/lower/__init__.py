"""From nodes to plain values, checked against the catalogue: the findings about shape (AL011, AL1xx)."""

from agentloom.analysis.lower.faults import collection_span
from agentloom.analysis.lower.kinds import FOUND_WORDS, kind_of
from agentloom.analysis.lower.mappings import empty_head, lower_head, lower_step

__all__ = ["FOUND_WORDS", "collection_span", "empty_head", "kind_of", "lower_head", "lower_step"]
