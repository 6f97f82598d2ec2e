"""Looking for replies that fit no longer, and recording them anew."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.cli.worlds import World, keys_of, replayable
from agentloom.core.engine import WorkflowEngine
from agentloom.core.gateways import gateway_of
from agentloom.core.kinds import Tools
from agentloom.core.recorded_tools import PartlyRecordedTools, ReplayedTools
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.partly_recorded import PartlyRecordedGateway
from agentloom.providers.recorder import Recorder, RecordingProvider
from agentloom.providers.recording import Recording
from agentloom.providers.recording_file import RecordingFile
from agentloom.providers.replies import Mismatch, Replies

UNUSED = "not asked: another branch, or a step that is gone"


class StaleStep(NamedTuple):
    """How a recording answers a step: `fresh`, `unverified` (written by hand), `stale`, `missing`, `recorded` (anew), or `unused`."""

    step: str
    status: str
    why: str | None


class SurveyedWorld(World):
    """A run with what is recorded, whatever is asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.noted: list[Mismatch] = []
        self._tools: ReplayedTools | None = None
        self.replies = Replies(Recording())

    def gateway(self, document: WorkflowDocument) -> ProviderGateway:
        """Return a gateway with the recording alone."""
        recording = replayable(self.path)
        gateway = gateway_of(document, os.environ, recording)
        self.replies = _replies_of(gateway)
        return gateway

    def enter(self, engine: WorkflowEngine, gateway: ProviderGateway) -> None:
        """Let tools answer from the recording."""

        def replayed(tools: Tools) -> Tools:
            self._tools = ReplayedTools(tools, self.replies.recording, self.noted.append)
            return self._tools

        engine.wrap_tools(replayed)

    def steps(self) -> list[StaleStep]:
        """Return how each step was answered."""
        return list(_steps(self.replies, self._tools.steps if self._tools else (), self.noted, ()))


class RenewedWorld(World):
    """A run in which only those calls reach providers and tools that aren't recorded as they are made now; they are recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gateway_made = PartlyRecordedGateway(Recording())
        self._hidden: tuple[str, ...] = ()
        self._recorder: Recorder | None = None
        self._tools: PartlyRecordedTools | None = None

    def steps(self) -> list[StaleStep]:
        """Return how each step was answered, and which were recorded anew."""
        kept = self._recorder.kept if self._recorder is not None else ()
        return list(_steps(self.gateway_made.replies, self._tools.steps if self._tools else (), (), kept))

    def gateway(self, document: WorkflowDocument) -> ProviderGateway:
        """Return the gateway."""
        self.gateway_made = PartlyRecordedGateway(replayable(self.path))
        self._hidden = keys_of(document)
        return gateway_of(document, os.environ, into=self.gateway_made)

    def enter(self, engine: WorkflowEngine, gateway: ProviderGateway) -> None:
        """Open the recording. Raises ``UsageError`` when it can't be written."""
        recording = self.gateway_made.replies.recording
        with_tools = recording.tools is not None
        file = RecordingFile(self.path)
        file.open(with_tools)
        recorder = self._recorder = self.gateway_made.recorder = Recorder(file, tools=with_tools, hidden=self._hidden)
        gateway.wrap(lambda provider: RecordingProvider(provider, recorder))
        if with_tools:

            def renewed(tools: Tools) -> Tools:
                self._tools = PartlyRecordedTools(tools, recording, recorder)
                return self._tools

            engine.wrap_tools(renewed)

    def leave(self) -> None:
        """Have the recording written to the disk, if anything in it is new."""
        if self._recorder is not None and self._recorder.changed:
            self._recorder.close()


def _steps(
    replies: Replies, called: Iterable[str], noted: Iterable[Mismatch], kept: Collection[str]
) -> Iterator[StaleStep]:
    """Yield how each step was answered, in the order in which they asked, then those that called tools, then the keys that nobody asked for."""
    wrong = {mismatch.step: mismatch for mismatch in reversed(list(noted))}
    for step in dict.fromkeys([*replies.answers, *called, *wrong]):
        answer = replies.answers.get(step)
        status, why = answer if answer is not None else ("fresh", None)
        if status in ("fresh", "unverified") and step in wrong:
            status = "missing" if wrong[step].kind == "missing" else "stale"
            why = wrong[step].why
        yield StaleStep(step, "recorded" if step in kept else status, why)
    for key in replies.unused:
        yield StaleStep(key, "unused", UNUSED)


def _replies_of(gateway: ProviderGateway) -> Replies:
    """Return the replies of the mock provider, which is alone in this gateway."""
    from agentloom.providers.mock import MockProvider

    (mock,) = gateway.candidates("")
    assert isinstance(mock, MockProvider)
    assert mock.replies is not None
    return mock.replies
