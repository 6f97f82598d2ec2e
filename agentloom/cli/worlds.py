"""What a run works with: its providers and tools as they are, recorded, or answered from a recording."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings, find_settings
from agentloom.core.engine import WorkflowEngine
from agentloom.core.gateways import gateway_of
from agentloom.core.needs import Needs, fingerprint
from agentloom.errors import AgentLoomError, WorkflowError
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.recording import Recording, load_recording
from agentloom.providers.setup import missing_for
from agentloom.tools.builtin import register_builtins
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.info import ToolInfo
from agentloom.tools.registry import ToolRegistry, register_module


class World:
    """The providers and tools of a run, as the environment and the settings describe them."""

    def gateway(self, document: WorkflowDocument) -> ProviderGateway:
        """Return the gateway for a workflow. Raises ``WorkflowError`` and ``UsageError`` for what can't be set up."""
        return gateway_of(document, os.environ)

    def enter(self, engine: WorkflowEngine, gateway: ProviderGateway) -> None:
        """Take in an engine that is about to run."""

    def leave(self) -> None:
        """Do what has to be done when the run is over, however it ended."""


class RecordedWorld(World):
    """The same, with a recording of all that providers give, and of what tools give if ``tools`` is true."""

    def __init__(self, path: str, *, tools: bool = False) -> None:
        self.path = Path(path)
        self._tools = tools
        self._close: Callable[[], None] = lambda: None
        self._hidden: tuple[str, ...] = ()

    def gateway(self, document: WorkflowDocument) -> ProviderGateway:
        """Return the gateway; its keys will be kept out of the recording."""
        self._hidden = keys_of(document)
        return gateway_of(document, os.environ)

    def enter(self, engine: WorkflowEngine, gateway: ProviderGateway) -> None:
        """Open the recording. Raises ``UsageError`` when it can't be written, ``WorkflowError`` when there is something else."""
        from agentloom.core.recorded_tools import RecordingTools
        from agentloom.providers.recorder import Recorder, RecordingProvider
        from agentloom.providers.recording_file import RecordingFile

        file = RecordingFile(self.path)
        file.open(self._tools)
        recorder = Recorder(file, tools=self._tools, hidden=self._hidden)
        gateway.wrap(lambda provider: RecordingProvider(provider, recorder))
        if self._tools:
            engine.wrap_tools(lambda tools: RecordingTools(tools, recorder))
        self._close = recorder.close

    def leave(self) -> None:
        """Have the recording written to the disk."""
        self._close()


class ReplayedWorld(World):
    """Nothing but a recording: no provider is asked, and no tool is run that was recorded.

    Without ``strict`` a placeholder answers what isn't recorded.
    """

    def __init__(self, path: Path, *, strict: bool = True) -> None:
        self.path = path
        self._strict = strict
        self._recording = Recording()

    def gateway(self, document: WorkflowDocument) -> ProviderGateway:
        """Return a gateway with the recording alone. Raises ``WorkflowError`` for one that can't be replayed."""
        self._recording = replayable(self.path)
        return gateway_of(document, os.environ, self._recording, strict=self._strict)

    def enter(self, engine: WorkflowEngine, gateway: ProviderGateway) -> None:
        """Let tools answer from the recording."""
        from agentloom.core.recorded_tools import ReplayedTools

        engine.wrap_tools(lambda tools: ReplayedTools(tools, self._recording))


def replayable(path: Path) -> Recording:
    """Return the recording in a file. Raises ``WorkflowError``, with the cure, for one that nothing can be replayed from."""
    recording = load_recording(path)
    cure = f"record a run with `agentloom run FILE --record {path}`"
    if recording.version < 2:
        raise WorkflowError(
            f"recording `{path}` is of version {recording.version}, which doesn't say what was asked; {cure}"
        )
    if not recording.turns and not recording.tools:
        raise WorkflowError(f"recording `{path}` is empty; {cure}")
    return recording


def keys_of(document: WorkflowDocument) -> tuple[str, ...]:
    """Return the keys of providers that the environment holds."""
    from agentloom.providers.table import keys_in

    return keys_in(os.environ, document.context.settings.providers.values())


def tools_of(document: WorkflowDocument) -> ToolRegistry | None:
    """Return the tools of a project that has some of its own, the built-in ones among them; None for only those.

    The settings name the modules; they are looked for beside the settings first.
    """
    return _tools(document.context.settings, None if document.path is None else document.path.parent)


def lacking(needs: Needs, folder: Path, shared: Path | None = None) -> list[str]:
    """Return what this machine lacks to perform a run, in a few words each; nothing when it can.

    ``folder`` is where settings are looked for, ``shared`` the folder that is the same on all machines.
    """
    if needs.shared is not None:
        if shared is None:
            return []  # the run says so, and ends
        folder = shared / needs.shared
    settings = find_settings(folder.absolute() / "x")
    lacks: list[str] = []
    for name in needs.providers:
        try:
            missing = missing_for(name, os.environ, settings.providers)
        except AgentLoomError as error:
            missing = str(error)
        if missing:
            lacks.append(f"provider `{name}` ({missing})")
    infos: dict[str, ToolInfo] = dict(BUILTIN_TOOLS)
    if not needs.tools.keys() <= infos.keys():
        try:
            infos.update((info.name, info) for info in (_tools(settings, folder) or ToolRegistry()).list())
        except AgentLoomError as error:
            return [*lacks, str(error)]
    for name, wanted in needs.tools.items():
        if name not in infos:
            lacks.append(f"tool `{name}`")
        elif wanted and fingerprint(infos[name]) != wanted:
            lacks.append(f"tool `{name}` (it takes other arguments there)")
    return lacks


def _tools(settings: Settings, folder: Path | None) -> ToolRegistry | None:
    if not settings.tools:
        return None
    registry = ToolRegistry()
    register_builtins(registry, folder=folder)
    if settings.folder is not None:
        sys.path.insert(0, str(settings.folder))
    for module in settings.tools:
        register_module(registry, module)
    return registry
