"""Marks on the model's fields: what a field's text means, beyond its type.

A mark stands in ``Annotated[...]`` on a field or on the items of its list, ends up in the catalogue, and drives the symbol table,
undefined-name rules, completion, navigation and colours without code per step type.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "ref",  # names a thing of kind `of`: step, agent, tool, provider, state, child_state (a state key of the step's child)
    "defines",  # defines a thing of kind `of`: step, agent
    "template",  # text with `{state.x}` placeholders
    "template_deep",  # texts at every depth are templates or lone state paths; `of`: what its keys name, tool_argument or child_state
    "expression",  # a router expression
    "state_read",  # a dotted state path that is read
    "state_write",  # a dotted state path that is written
    "file",  # a path relative to the file it stands in; `of`: workflow, agent, recording, attachment, any
    "model",  # a model's name; `of`: embedding
    "json_schema",  # a JSON Schema (draft 2020-12)
    "python",  # a dotted path to a Python object
    "regex",  # a Python regular expression
    "duration",  # a time; `of`: seconds or milliseconds
    "money",  # US dollars
    "excludes",  # can't stand beside the field `of`
    "text",  # prose meant for people or models
]


class Mark(NamedTuple):
    """One mark. ``of`` narrows the kind down, see ``Kind``."""

    kind: Kind
    of: str = ""
