"""The built-in tools as data, for the checks and for editors: importable without running or importing any of them.

A test holds that this is what the functions themselves say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentloom.tools.info import ToolInfo

_ENCODING = {
    "type": "string",
    "default": "utf-8",
    "description": "The name of the text encoding.",
}


def _object(**types: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in types.items()}}


def _info(
    name: str, description: str, required: list[str], properties: dict[str, Any], returns: dict[str, Any]
) -> ToolInfo:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return ToolInfo(name, description, parameters, returns)


BUILTIN_TOOLS: Mapping[str, ToolInfo] = {
    info.name: info
    for info in (
        _info(
            "http_request",
            "Make one HTTP request and return its status code, headers and body; redirects are not followed.",
            ["url"],
            {
                "url": {"type": "string", "description": "The address, `http` or `https`."},
                "method": {
                    "type": "string",
                    "enum": ["GET", "POST", "PUT", "DELETE"],
                    "default": "GET",
                    "description": "The HTTP method.",
                },
                "headers": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "default": {},
                    "description": "Headers to send, by name.",
                },
                "body": {"type": "string", "default": "", "description": "The text to send as the request's body."},
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "default": 30,
                    "description": "Seconds until the request is given up; 0 means no limit.",
                },
            },
            _object(status_code="integer", headers="object", body="string"),
        ),
        _info(
            "shell_command",
            "Run a command with `sh -c` and return its return code, standard output and standard error.",
            ["command"],
            {
                "command": {"type": "string", "description": "The command line."},
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "default": 30,
                    "description": "Seconds until the command and everything it started is killed; 0 means no limit.",
                },
                "cwd": {"type": "string", "default": ".", "description": "The folder to run in."},
            },
            _object(returncode="integer", stdout="string", stderr="string"),
        ),
        _info(
            "file_read",
            "Read a text file and return its text.",
            ["path"],
            {"path": {"type": "string", "description": "The file to read."}, "encoding": _ENCODING},
            {"type": "string"},
        ),
        _info(
            "file_write",
            "Write a text to a file, creating missing folders, and return how many characters were written.",
            ["path", "content"],
            {
                "path": {"type": "string", "description": "The file to write; what it held before is lost."},
                "content": {"type": "string", "description": "The text to write."},
                "encoding": _ENCODING,
            },
            _object(written="integer", path="string"),
        ),
    )
}
