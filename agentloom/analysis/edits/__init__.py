"""Edits that rules offer as fixes: small changes to YAML text that keep everything around them as it is.

All offsets are those of the unit's text that is passed in. A function returns no edits when it can't do the change safely
(flow style over several lines, merge keys, …); the finding then has no fix.
"""

from agentloom.analysis.edits.adding import add_entry, add_first_entry, add_item, add_steps, move_under
from agentloom.analysis.edits.removal import remove_entry, remove_item
from agentloom.analysis.edits.values import (
    legal_name,
    quote_source,
    quoted,
    rename_key,
    replace_inside,
    replace_value,
    set_source,
    set_span,
    skeleton,
    wrap_in_list,
    wrap_in_mapping,
)

__all__ = [
    "add_entry",
    "add_first_entry",
    "add_item",
    "add_steps",
    "legal_name",
    "move_under",
    "quote_source",
    "quoted",
    "remove_entry",
    "remove_item",
    "rename_key",
    "replace_inside",
    "replace_value",
    "set_source",
    "set_span",
    "skeleton",
    "wrap_in_list",
    "wrap_in_mapping",
]
