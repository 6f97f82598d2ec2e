"""Inline a subworkflow: its steps take the place of the step that ran them.

Ids are made unique; what the child wrote stands where the step's `output` put it; what it read by `input` is read where that came
from. All of it is refused, with the reason, where the workflow wouldn't do the same as before. (What can't be kept: an `input` that
leads nowhere failed the step, and now renders empty.)
"""

from agentloom.ide.refactor.inline.inlining import inline, why_not

__all__ = ["inline", "why_not"]
