"""Tools that are recorded, and tools that answer from a recording without being run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentloom import errors
from agentloom.core.kinds import Tools
from agentloom.core.plain import NotPlain, plain
from agentloom.providers.recorder import Recorder
from agentloom.providers.recording import Recording, ToolEntry
from agentloom.providers.replies import Kind, Mismatch
from agentloom.providers.surroundings import AttemptId, current_attempt, current_secrets
from agentloom.tools.info import ToolInfo

if TYPE_CHECKING:
    from collections.abc import Callable

NETWORK_TOOLS = ("http_request",)
"""Built-in tools that reach out: a replay refuses them, unless it has recorded what they gave."""

# What a tool may raise that a step doesn't take for a failure of the tool.
_NAMED = ("SandboxViolationError", "SecurityError", "ToolNotFoundError", "ValidationError")


class ToolFailure(Exception):
    """What a tool raised when it was recorded."""


class RecordingTools:
    """Tools whose calls are written down: name, arguments, and the result or the error."""

    def __init__(self, tools: Tools, recorder: Recorder) -> None:
        self._tools = tools
        self._recorder = recorder

    def info(self, name: str) -> ToolInfo:
        """Return what is known of a tool."""
        return self._tools.info(name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool, and write down what came of it. What is no plain data fails the step anyhow, and isn't recorded."""
        given = plain(dict(arguments), "arguments")  # before the tool changes them
        try:
            result = await self._tools.call(name, arguments)
        except Exception as error:
            raised = {"type": type(error).__name__, "message": current_secrets().text(str(error))}
            await self._keep(name, given, error=raised)
            raise
        try:
            kept = plain(result, "result")
        except NotPlain:
            return result
        await self._keep(name, given, result=current_secrets().result(_step(), kept))
        return result

    async def _keep(self, name: str, arguments: Any, **outcome: Any) -> None:
        secrets = current_secrets()
        call = {"name": name, "arguments": secrets.value(arguments), **secrets.value(outcome)}
        await self._recorder.keep_tool(_step(), call)


class _Recorded:
    """Tools in front of which a recording stands."""

    def __init__(self, tools: Tools, recording: Recording) -> None:
        self._tools = tools
        self._calls = Calls(recording)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that called tools, in order."""
        return tuple(self._calls.steps)

    def info(self, name: str) -> ToolInfo:
        """Return what is known of a tool."""
        return self._tools.info(name)


class ReplayedTools(_Recorded):
    """Tools that answer from a recording. Where no tools were recorded, they are run, but for those that reach out.

    ``noted`` is told of calls that aren't recorded instead of failing them; such a call gives what was recorded next, or null.
    """

    def __init__(self, tools: Tools, recording: Recording, noted: Callable[[Mismatch], None] | None = None) -> None:
        super().__init__(tools, recording)
        self._recording = recording
        self._noted = noted

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return what the tool gave when it was recorded, or raise what it raised. Raises ``RecordingMismatchError`` for another call."""
        step = _step()
        if self._recording.tools is None:
            if name not in NETWORK_TOOLS:
                return await self._tools.call(name, arguments)
            return self._mismatch(
                step, f"it calls `{name}`, and tools were recorded without `--record-tools`", "missing"
            )
        found = self._calls.next(step, name, arguments)
        if found is not None:
            return _outcome(found)
        calls = [call for call in self._calls.of(step) if call.name == name]
        if not calls:
            return self._mismatch(step, f"it holds no call of the tool `{name}`", "missing")
        self._mismatch(step, f"the tool `{name}` is called with other arguments", "changed")
        return _outcome(calls[0])

    def _mismatch(self, step: str, why: str, kind: Kind) -> None:
        found = Mismatch(step, kind, why)
        if self._noted is None:
            raise found.error(self._recording.path or "")
        self._noted(found)


class PartlyRecordedTools(_Recorded):
    """Tools that answer from a recording where they are called as it was recorded; other calls are run, and recorded."""

    def __init__(self, tools: Tools, recording: Recording, recorder: Recorder) -> None:
        super().__init__(RecordingTools(tools, recorder), recording)
        self._recorder = recorder

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return what was recorded of this call, or run the tool."""
        found = self._calls.next(_step(), name, arguments)
        if found is None:
            return await self._tools.call(name, arguments)
        self._recorder.carry_tool(_step(), found.to_dict())
        return _outcome(found)


class Calls:
    """The recorded calls of tools, and which of them have been given in each attempt; ``steps`` are those that called any."""

    def __init__(self, recording: Recording) -> None:
        self._recorded = recording.tools or {}
        self.steps: dict[str, None] = {}
        self._played: dict[tuple[str, AttemptId | None], set[int]] = {}

    def of(self, step: str) -> tuple[ToolEntry, ...]:
        """Return the calls of a step, which is found as replies are: by its whole path or by its own id."""
        return self._recorded.get(step) or self._recorded.get(step.rpartition(".")[2], ())

    def next(self, step: str, name: str, arguments: Mapping[str, Any]) -> ToolEntry | None:
        """Return the recorded call of a step with this name and these arguments; None without one."""
        self.steps[step] = None
        calls = self.of(step)
        wanted = _canonical(name, current_secrets().value(plain(dict(arguments), "arguments")))
        same = [at for at, call in enumerate(calls) if _canonical(call.name, call.arguments) == wanted]
        if not same:
            return None
        played = self._played.setdefault((step, current_attempt()), set())
        at = next((at for at in same if at not in played), same[-1])
        played.add(at)
        return calls[at]


def _outcome(call: ToolEntry) -> Any:
    if call.error is None:
        return plain(call.result, "result")  # a copy: whoever gets it may change it
    kind, message = call.error["type"], call.error["message"]
    if kind in _NAMED:
        raise getattr(errors, kind)(message)
    raise ToolFailure(message)


def _canonical(name: str, arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


def _step() -> str:
    attempt = current_attempt()
    return attempt.path if attempt is not None else ""
