"""Extract steps to a subworkflow: a file beside this one, or a workflow in place.

What the steps read from outside becomes `input`, what others read of theirs `return_keys`, and whoever depended on one of them
depends on the new step. All of it is refused, with the reason, where the workflow wouldn't do the same as before. (One thing can't
be kept: when one of the steps fails, the new step fails as a whole, and with it what only waited for the others.)
"""

from agentloom.ide.refactor.extract.extraction import extract, steps_in, why_not

__all__ = ["extract", "steps_in", "why_not"]
