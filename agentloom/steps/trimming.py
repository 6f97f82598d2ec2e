"""Trimming of conversations: how many tokens turns take, by estimate, and what is left out when they are too many."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agentloom.core.results import JSON
from agentloom.errors import StepError
from agentloom.steps.conversation import Conversation, Turn, leading_system, turn

CHARS_A_TOKEN = 4
FRAME_TOKENS = 4
"""What each message takes besides its text."""

SUMMARY_TOKENS = 256
"""The longest summary that a model is asked for."""

SUMMARY_TEMPERATURE = 0.3

SHORTEST_SUMMARY = 16
"""A summary isn't worth a call where less room than this is left for it, in tokens."""

LONGEST_TRANSCRIPT = 200_000
"""How much of what is left out is summarized, in characters; of more, the end."""

_SUMMARY = "Summary of the conversation so far:\n"

Summarize = Callable[[str], Awaitable[str]]
"""Returns a summary of a transcript."""


class Trimmed(NamedTuple):
    """A conversation that fits, how many messages were left out, and about how many tokens the turn sends."""

    conversation: Conversation
    dropped: int
    tokens: int


def tokens_of(message: Turn) -> int:
    """Return about how many tokens a message takes: a quarter of its letters, and its frame."""
    size = sum(len(message.get(key) or "") for key in ("content", "name", "tool_call_id"))
    if message.get("tool_calls"):
        size += len(json.dumps(message["tool_calls"], ensure_ascii=False))
    return max(1, -(-size // CHARS_A_TOKEN) + FRAME_TOKENS)


def summary_turn(summary: str) -> Turn:
    """Return a summary as the system message that is sent in the place of what it sums up."""
    return turn("system", _SUMMARY + summary)


async def trimmed(talk: Conversation, added: Sequence[Turn], summarize: Summarize) -> Trimmed:
    """Return a conversation with as many of its turns as its budget has room for beside those that are ``added``.

    System messages at its beginning stay, and so does an earlier summary. Raises ``StepError``, permanent, when not even what is added fits.
    """
    pinned = leading_system(talk.messages)
    fixed = sum(map(tokens_of, [*talk.messages[:pinned], *added]))
    told = 0 if talk.summary is None else tokens_of(summary_turn(talk.summary))
    units = _units(talk.messages[pinned:], talk.trim_policy == "drop_pairs")
    sizes = [sum(map(tokens_of, unit)) for unit in units]
    total = fixed + told + sum(sizes)
    budget = talk.token_budget
    if budget is None or total <= budget:
        return Trimmed(talk, 0, total)
    summarizes = talk.trim_policy == "summarize_oldest"
    if fixed + (0 if summarizes else told) > budget:
        needed = fixed + (0 if summarizes else told)
        raise StepError(
            f"the conversation's `token_budget` of {budget} is too small for the turn, which takes about {needed}; "
            "raise it, or shorten the prompt"
        )
    reserved = min(SUMMARY_TOKENS + tokens_of(summary_turn("")), max(0, budget - fixed) // 2) if summarizes else told
    first, left = 0, sum(sizes)
    while first < len(units) and fixed + reserved + left > budget:
        left -= sizes[first]
        first += 1
    dropped = [message for unit in units[:first] for message in unit]
    kept = [message for unit in units[first:] for message in unit]
    talk = talk._replace(messages=(*talk.messages[:pinned], *kept))
    if summarizes:
        room = budget - fixed - left
        talk = talk._replace(summary=await _summary(talk.summary, dropped, room, summarize))
        told = 0 if talk.summary is None else tokens_of(summary_turn(talk.summary))
    return Trimmed(talk, len(dropped), fixed + told + left)


def _units(messages: Sequence[Turn], pairs: bool) -> list[list[Turn]]:
    """Return the turns in the groups that are left out together: a message with the results of the tools that it calls, or a user's turn
    with its answer."""
    units: list[list[Turn]] = []
    for message in messages:
        joins = message["role"] == "tool" or (
            pairs and message["role"] != "user" and units[-1:] and units[-1][0]["role"] == "user"
        )
        if joins and units:
            units[-1].append(message)
        else:
            units.append([message])
    return units


async def _summary(before: str | None, dropped: Sequence[Turn], room: int, summarize: Summarize) -> str | None:
    """Return a summary of what is left out, and of what was summed up before, that fits into ``room`` tokens; None if nothing does."""
    letters = (room - tokens_of(summary_turn(""))) * CHARS_A_TOKEN
    if letters < SHORTEST_SUMMARY * CHARS_A_TOKEN:
        return None
    lines = [] if before is None else [_SUMMARY + before]
    lines.extend(f"{message.get('name') or message['role']}: {_content(message)}" for message in dropped)
    transcript = "\n".join(lines)
    if len(transcript) > LONGEST_TRANSCRIPT:
        transcript = "…" + transcript[1 - LONGEST_TRANSCRIPT :]
    found = (await summarize(transcript)).strip() or transcript
    return found if len(found) <= letters else found[: letters - 1] + "…"


def _content(message: Turn) -> JSON:
    return message.get("content") or ", ".join(f"({call['name']})" for call in message.get("tool_calls") or ())
