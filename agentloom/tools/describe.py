"""The child process that imports a project's tools and says what they are: `python -m agentloom.tools.describe`. Internal.

It is started by `agentloom.tools.learning` for the checks and for editors, which never import code of a project themselves. What that code
prints goes nowhere; what it does to this process harms nobody.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentloom.tools.info import ToolInfo

MOST_CHARACTERS = 300
"""How much of an error is told."""


def main(arguments: list[str]) -> None:
    """Import modules and write a line about each: a mark, then JSON. The arguments: mark, seconds to live, folder, modules."""
    output = _own_output()
    mark, seconds, folder, *modules = arguments
    _live_at_most(float(seconds))
    # Before a project's folder is where Python looks first, and whatever its code does to that.
    import pydantic  # noqa: F401

    process = os.getpid()
    sys.argv[1:] = []
    if folder:
        sys.path.insert(0, folder)
    for module in modules:
        said = _described(module)
        if os.getpid() != process:  # a copy, which the module has made of this process
            os._exit(0)
        said["files"] = _files(folder, module)
        _write(output, mark, said)
    _write(output, mark, {"done": True})
    os._exit(0)  # without whatever the modules have left to run at the end


def _described(module: str) -> dict[str, Any]:
    from agentloom.errors import AgentLoomError
    from agentloom.tools.registry import tools_in

    try:
        found = [tool.info for tool in tools_in(module)]
        for info in found:
            json.dumps(info, allow_nan=False)
            _check(info)
    except AgentLoomError as error:
        return {"module": module, "fault": _one_line(str(error))}
    except BaseException as error:
        return {"module": module, "fault": f"tools module `{module}` can't be described: {_one_line(repr(error))}"}
    return {"module": module, "tools": [_plain(info._asdict()) for info in found]}


def _check(info: ToolInfo) -> None:
    """Raise ``UsageError`` for a tool whose description nobody could read: its class may say of itself what it likes."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    from agentloom.errors import UsageError

    properties = info.parameters.get("properties", {})
    try:
        Draft202012Validator.check_schema(info.parameters)
        Draft202012Validator.check_schema(info.returns)
        right = all(isinstance(about, Mapping) for about in properties.values())
    except SchemaError:
        right = False
    if not right or not isinstance(info.description, str):
        raise UsageError(f"tool `{info.name}`: its arguments and its result must be described in JSON Schema")


def _plain(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in info.items()}


def _files(folder: str, module: str) -> list[str]:
    """Return the files of the folder that were imported, and the module's own."""
    found = []
    for name, loaded in list(sys.modules.items()):
        path = getattr(loaded, "__file__", None)
        if isinstance(path, str) and (name == module or (folder and path.startswith(folder.rstrip(os.sep) + os.sep))):
            found.append(path)
    return found


def _own_output() -> int:
    """Return a descriptor of standard output that nobody else knows; the standard streams lead nowhere from now on."""
    output = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return output


def _live_at_most(seconds: float) -> None:
    """End this process in time even if nobody is left to end it, and whatever it is doing then."""
    import faulthandler

    faulthandler.dump_traceback_later(seconds, exit=True, file=2)


def _write(output: int, mark: str, said: Mapping[str, Any]) -> None:
    data = f"\n{mark}{json.dumps(said)}\n".encode()
    while data:
        data = data[os.write(output, data) :]


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


if __name__ == "__main__":
    main(sys.argv[1:])
