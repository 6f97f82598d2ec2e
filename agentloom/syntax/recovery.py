"""What is left of a piece that does not compose."""

from __future__ import annotations

from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import Composed
from agentloom.syntax.faults import syntax_error
from agentloom.syntax.pieces import Kind


def recover(kind: Kind | None, text: str, failure: Failure, pure: bool = False) -> Composed:
    """Return what can be read of a broken piece, with a finding for each fault."""
    return Composed(None, [syntax_error(text, failure)])
