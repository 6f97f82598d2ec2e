"""Whole steps to insert in an editor: what a typical step of each type looks like before its blanks are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Type of step -> the step as plain data. Blanks are `${n:text}` as in the snippets of editors; no `}` inside a blank.
STEP_SNIPPETS: Mapping[str, Mapping[str, Any]] = {
    "llm_call": {"id": "${1:id}", "type": "llm_call", "prompt": "${2:prompt}", "output": "${3:key}"},
    "router": {
        "id": "${1:id}",
        "type": "router",
        "depends_on": ["${2:step}"],
        "conditions": [{"expression": "${3:state.key == 'value'}", "target": "${4:step}"}],
        "default": "${5:step}",
    },
    "tool": {
        "id": "${1:id}",
        "type": "tool",
        "tool_name": "${2:http_request}",
        "tool_args": {"${3:url}": "${4:value}"},
        "output": "${5:key}",
    },
    "subworkflow": {
        "id": "${1:id}",
        "type": "subworkflow",
        "workflow_path": "${2:./child.loom.yaml}",
        "output": "${3:key}",
    },
    "approval_gate": {"id": "${1:id}", "type": "approval_gate", "depends_on": ["${2:step}"], "output": "${3:key}"},
    "embed": {"id": "${1:id}", "type": "embed", "inputs": "${2:key}", "output": "${3:vectors}"},
    "agent": {"id": "${1:id}", "type": "agent", "agent": "${2:name}", "input": "${3:text}", "output": "${4:key}"},
}
