"""A recording as a file that grows: keys are added and replaced, and every byte of the others stays as it is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple

from agentloom.errors import UsageError, WorkflowError
from agentloom.files import in_plain_words, read_bytes, write_new
from agentloom.providers.hashes import NEWEST_VERSION
from agentloom.providers.recording import Recording, load_recording
from agentloom.records import record

TOOLS = "_tools"
_EMPTY = f'{{\n  "_version": {NEWEST_VERSION}\n}}\n'
_BLANK = re.compile(r"[\s\ufeff]*")


class _Place(NamedTuple):
    """Where the value of a top-level key stands in the text."""

    start: int
    end: int


@record()
class _Text:
    """A recording's text, and where its values stand. ``tail`` is where a new key goes: behind the last value."""

    text: str
    places: Mapping[str, _Place]
    tail: int


class News(NamedTuple):
    """What is new in a recording: turns by key, as text; calls of tools by step; steps whose calls are let go."""

    turns: dict[str, str]
    tools: dict[str, Any]
    tools_gone: frozenset[str]


class RecordingFile:
    """The file that a run is recorded into. Written at once or not at all; what another program writes meanwhile is kept.

    Several runs may record into one file, one after the other: each replaces the steps that it runs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._real = Path(os.path.realpath(path))
        self._base = _parsed(_EMPTY)
        self._changed: dict[str, str] = {}
        self._tools: dict[str, Any] = {}
        self._tools_gone: set[str] = set()
        self._with_tools = False
        self._seen: tuple[int, int, int] | None = None
        self._mode = 0o600

    def open(self, tools: bool = False) -> Recording:
        """Read what is there, make sure that it can be written, and return what it holds.

        A new file is made at once; ``tools`` says that it is going to hold what tools give. Raises ``UsageError`` for one that can't be written, ``WorkflowError`` for one that is no recording.
        """
        self._with_tools = tools
        if self._real.exists() and not self._real.is_file() and not self._real.is_dir():
            # The file is replaced by a new one, and a device must not be.
            raise UsageError(f"recording `{self.path}` can't be written: it is a pipe or a device")
        held = self._read()
        try:
            self._real.parent.mkdir(parents=True, exist_ok=True)
            if self._seen is None or self._seen[1] == 0:
                self.write()
            else:
                self._mode = self._real.stat().st_mode & 0o777
                _try_to_write(self._real)
        except OSError as error:
            raise UsageError(f"recording `{self.path}` can't be written: {in_plain_words(error)}") from None
        return held

    def set(self, key: str, turns: Iterable[Mapping[str, Any]]) -> None:
        """Put the replies of a key in the place of those that it had."""
        self._changed[key] = _written(list(turns))

    def set_tools(self, step: str, calls: Iterable[Mapping[str, Any]]) -> None:
        """Put the calls of a step's tools in the place of those that it had."""
        self._tools[step] = list(calls)  # a new list: another thread may be writing the old one
        self._tools_gone.discard(step)

    def forget_tools(self, step: str) -> None:
        """Let go of what the tools of a step gave: its replies were recorded anew without them."""
        if step not in self._tools:
            self._tools_gone.add(step)

    def write(self, sync: bool = False) -> None:
        """Write the file. Raises ``OSError``; it is then as it was. ``sync`` waits until the disk has it."""
        self.write_down(self.news(), sync)

    def news(self) -> News:
        """Return what is to be written, for ``write_down`` in another thread."""
        return News(dict(self._changed), dict(self._tools), frozenset(self._tools_gone))

    def write_down(self, news: News, sync: bool = False) -> None:
        """Write the file with what is new in it; one thread at a time."""
        if self._seen is not None and self._signature() != self._seen:
            with suppress(WorkflowError):  # broken by somebody else meanwhile: what we know is written over it
                self._read()
        text = self._text(news)
        # Half of a surrogate pair is no UTF-8; as `\udc80` it is JSON that any tool reads.
        write_new(self._real, text.encode("utf-8", "backslashreplace"), mode=self._mode, sync=sync)
        if self._mode != 0o600:
            os.chmod(self._real, self._mode)  # whatever the umask says: the file had this mode before
        self._seen = self._signature()

    def _read(self) -> Recording:
        self._seen = self._signature()
        if self._seen is None or self._seen[1] == 0:
            self._base = _parsed(_EMPTY)
            return Recording(self.path)
        held = load_recording(self.path)
        if held.version < NEWEST_VERSION:
            raise WorkflowError(
                f"recording `{self.path}` is of version {held.version}, and can't be added to; record into a new file"
            )
        self._base = _parsed(read_bytes(self.path).decode("utf-8"))
        return held

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._real)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return None if not os.path.lexists(self.path) else (0, 1, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def _text(self, news: News) -> str:
        base, changed = self._base, dict(news.turns)
        place = base.places.get(TOOLS)
        if self._with_tools or (news.tools_gone and place is not None):
            held = None if place is None else json.loads(base.text[place.start : place.end])
            tools = {step: calls for step, calls in (held or {}).items() if step not in news.tools_gone} | news.tools
            if tools != held:
                changed[TOOLS] = _written(tools)
        parts: list[str] = []
        at = 0
        for key, place in base.places.items():
            if key in changed:
                parts += [base.text[at : place.start], changed.pop(key)]
                at = place.end
        parts.append(base.text[at : base.tail])
        comma = bool(base.places)
        for key in sorted(changed):
            parts.append(f"{',' if comma else ''}\n  {json.dumps(key, ensure_ascii=False)}: {changed[key]}")
            comma = True
        rest = base.text[base.tail :]
        parts.append(rest if rest[:1] in "\r\n" or not changed else f"\n{rest.lstrip()}")
        return "".join(parts)


def _parsed(text: str) -> _Text:
    """Return a recording's text with its places; it has been read before, so it is an object."""
    decoder = json.JSONDecoder()
    places: dict[str, _Place] = {}

    def skip(at: int) -> int:
        match = _BLANK.match(text, at)
        return match.end() if match else at

    at = tail = skip(0) + 1
    at = skip(at)
    while text[at] == '"':
        key, at = decoder.raw_decode(text, at)
        start = skip(skip(at) + 1)
        _, tail = decoder.raw_decode(text, start)
        places[key] = _Place(start, tail)
        at = skip(tail)
        if text[at] == ",":
            at = skip(at + 1)
    return _Text(text, places, tail)


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if "[" in text:  # vectors: a line each, not a line a number; no text of JSON holds a line break
        text = re.sub(
            r"\[\n[-\s\d.,eE+]+\n\s*\]",
            lambda found: re.sub(r"\s+", " ", found[0]).replace("[ ", "[").replace(" ]", "]"),
            text,
        )
    return text.replace("\n", "\n  ")


def _try_to_write(path: Path) -> None:
    """Raise ``OSError`` unless a file, and another one beside it, can be written."""
    with open(path, "r+b"):
        pass
    handle, beside = mkstemp(prefix=".agentloom-", suffix=".tmp", dir=path.parent)
    os.close(handle)
    os.unlink(beside)
