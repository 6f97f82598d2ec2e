"""Which recorded reply answers a request, and whether it was recorded for that very request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from agentloom.errors import RecordingMismatchError
from agentloom.providers.base import EmbeddingRequest, Request
from agentloom.providers.hashes import request_hash
from agentloom.providers.recording import Entry, Recording
from agentloom.providers.surroundings import AttemptId, current_attempt

Kind = Literal["missing", "changed"]


class Mismatch(NamedTuple):
    """A request that the recording doesn't answer: it holds no reply to the step, or the reply to another request."""

    step: str
    kind: Kind
    why: str

    def error(self, where: str | Path) -> RecordingMismatchError:
        """Return the error of a strict replay."""
        return RecordingMismatchError(
            f"the recording{f' `{where}`' if where else ''} doesn't answer step `{self.step}`: {self.why}; `agentloom record --stale` records it anew",
            step=self.step,
            why=self.why,
        )


class Found(NamedTuple):
    """The reply to a request: the turn ``at`` of a ``key``. ``mismatch`` says why it isn't the one that was recorded for the request."""

    entry: Entry | None
    key: str = ""
    at: int = 0
    mismatch: Mismatch | None = None
    unverified: bool = False

    @property
    def answer(self) -> Answer:
        """What is said of the step in a report."""
        if self.mismatch is not None:
            return Answer("missing" if self.mismatch.kind == "missing" else "stale", self.mismatch.why)
        return Answer("unverified", "its reply doesn't say what it was recorded for") if self.unverified else FRESH


class Answer(NamedTuple):
    """How a recording answers a step, and why not as it was recorded."""

    status: Literal["fresh", "unverified", "stale", "missing"]
    why: str | None = None


FRESH = Answer("fresh")


class Replies:
    """The replies of a recording, and which of them have been given.

    ``by_attempt`` lets each attempt of a step begin at its first turn, as it was recorded; otherwise turns go on over attempts.
    ``answers`` tells of each step how it was answered, or the first thing that was wrong with that.
    """

    def __init__(self, recording: Recording, *, by_attempt: bool = False) -> None:
        self.recording = recording
        self.answers: dict[str, Answer] = {}
        self._by_attempt = by_attempt
        self._played: dict[tuple[str, AttemptId | None], set[int]] = {}
        self._hashed = {key: any(entry.request_hash for entry in turns) for key, turns in recording.turns.items()}

    @property
    def where(self) -> str | Path:
        """What messages call the recording."""
        return self.recording.path or "the recording"

    @property
    def unused(self) -> list[str]:
        """The keys that have answered nothing, in the order of the file."""
        given = {key for key, _ in self._played}
        return [key for key in self.recording.turns if key not in given]

    def next(self, request: Request | EmbeddingRequest) -> Found:
        """Return the reply to a request, and count it as given. Without a reply there is always something wrong."""
        found = self.find(request)
        if found.key:
            self._of(found.key).add(found.at)
        known = self.answers.get(request.step_id)
        if known is None or known.status in ("fresh", "unverified"):
            self.answers[request.step_id] = found.answer
        return found

    def find(self, request: Request | EmbeddingRequest) -> Found:
        """Return the reply to a request, and count nothing."""
        found = self.recording.key_of(request)
        if found is None:
            return Found(None, mismatch=Mismatch(request.step_id, "missing", "it holds no reply to it"))
        key, _ = found
        turns = self.recording.turns[key]
        played = self._of(key)
        at = next((at for at in range(len(turns)) if at not in played), len(turns) - 1)
        mismatch: Mismatch | None = None
        unverified = not self._hashed[key]
        if not unverified:
            asked_for = request_hash(request, self.recording.version)
            same = [at for at, entry in enumerate(turns) if entry.request_hash == asked_for]
            if same:
                at = next((at for at in same if at not in played), same[-1])
            elif turns[at].request_hash is None:  # written by hand: it answers whatever is asked
                unverified = True
            else:
                mismatch = _changed(request, turns, at, len(played))
        if isinstance(request, EmbeddingRequest) and mismatch is None:
            vectors = turns[at].embeddings
            if vectors is None or len(vectors) != len(request.inputs):
                count = "no vectors" if vectors is None else f"{len(vectors)} vectors for {len(request.inputs)} texts"
                return Found(None, key, at, Mismatch(request.step_id, "changed", f"its reply holds {count}"))
        return Found(turns[at], key, at, mismatch, unverified)

    def _of(self, key: str) -> set[int]:
        return self._played.setdefault((key, current_attempt() if self._by_attempt else None), set())


def _changed(request: Request | EmbeddingRequest, turns: Sequence[Entry], at: int, played: int) -> Mismatch:
    from agentloom.providers.asked import asked, changes

    if played >= len(turns):
        count = "1 turn is" if len(turns) == 1 else f"{len(turns)} turns are"
        why = f"it asks once more, but only {count} recorded"
    else:
        why = changes(turns[at].asked, asked(request))
    return Mismatch(request.step_id, "changed", why)
