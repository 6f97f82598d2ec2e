"""Checkpoints: what is kept of a run so that it can go on later."""

from __future__ import annotations

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData
from agentloom.checkpointing.files import FileCheckpointer

__all__ = ["BaseCheckpointer", "CheckpointData", "FileCheckpointer"]
