"""Which recorded reply answers a request, and whether it was recorded for that very request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from agentloom.errors import RecordingMismatchError
from agentloom.providers.base import EmbeddingRequest, Request
from agentloom.providers.recording import Entry, Recording, request_hash
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
            f"the recording `{where}` doesn't answer step `{self.step}`: {self.why}; `agentloom record --stale` records it anew",
            step=self.step,
            why=self.why,
        )


class Replies:
    """The replies of a recording, and which of them have been given.

    ``by_attempt`` lets each attempt of a step begin at its first turn, as it was recorded; otherwise turns go on over attempts.
    """

    def __init__(self, recording: Recording, *, by_attempt: bool = False) -> None:
        self.recording = recording
        self._by_attempt = by_attempt
        self._played: dict[tuple[str, AttemptId | None], set[int]] = {}
        self._hashed = {key: any(entry.request_hash for entry in turns) for key, turns in recording.turns.items()}

    @property
    def where(self) -> str | Path:
        """What messages call the recording."""
        return self.recording.path or "the recording"

    @property
    def given(self) -> set[str]:
        """The keys that have answered something."""
        return {key for key, _ in self._played}

    def next(self, request: Request | EmbeddingRequest) -> tuple[Entry | None, Mismatch | None]:
        """Return the reply to a request, and what is wrong with it. Without a reply there is always something wrong."""
        found = self.recording.key_of(request)
        if found is None:
            return None, Mismatch(request.step_id, "missing", "it holds no reply to it")
        key, _ = found
        turns = self.recording.turns[key]
        played = self._played.setdefault((key, current_attempt() if self._by_attempt else None), set())
        at, mismatch = self._choose(request, turns, played, self._hashed[key])
        played.add(at)
        entry = turns[at]
        if isinstance(request, EmbeddingRequest) and mismatch is None:
            if entry.embeddings is None:
                return None, Mismatch(request.step_id, "changed", "its reply holds no vectors")
            if len(entry.embeddings) != len(request.inputs):
                count, wanted = len(entry.embeddings), len(request.inputs)
                return None, Mismatch(request.step_id, "changed", f"its reply holds {count} vectors for {wanted} texts")
        return entry, mismatch

    def _choose(
        self, request: Request | EmbeddingRequest, turns: Sequence[Entry], played: set[int], hashed: bool
    ) -> tuple[int, Mismatch | None]:
        following = next((at for at in range(len(turns)) if at not in played), len(turns) - 1)
        if not hashed:
            return following, None
        asked_for = request_hash(request, self.recording.version)
        same = [at for at, entry in enumerate(turns) if entry.request_hash == asked_for]
        if same:
            return next((at for at in same if at not in played), same[-1]), None
        entry = turns[following]
        if entry.request_hash is None:  # written by hand: it answers whatever is asked
            return following, None
        from agentloom.providers.asked import asked, changes

        if len(played) >= len(turns):
            count = "1 turn is" if len(turns) == 1 else f"{len(turns)} turns are"
            why = f"it asks once more, but only {count} recorded"
        else:
            why = changes(entry.asked, asked(request))
        return following, Mismatch(request.step_id, "changed", why)
