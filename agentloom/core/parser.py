"""The parser of the public Python API: files and plain data to documents that ``WorkflowEngine`` takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.loader import load_data, load_workflow


class WorkflowParser:
    """Loads workflows. ``.workflow`` of what it returns is the typed model, ``.diagnostics`` what was found."""

    @staticmethod
    def from_yaml(path: str | os.PathLike[str]) -> WorkflowDocument:
        """Return the document of a file. Raises ``InvalidWorkflow`` for errors in it, ``WorkflowError`` if it can't be read."""
        return load_workflow(path)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> WorkflowDocument:
        """Return the document of a workflow in plain data. Raises ``InvalidWorkflow`` for errors in it."""
        return load_data(data)
