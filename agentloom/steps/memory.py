"""What a model is told of a conversation in this turn, and the conversation as it is written back after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentloom.core.results import JSON
from agentloom.errors import ProviderError, RecordingMismatchError, StepError
from agentloom.providers.base import Attachment, Message
from agentloom.steps.asking import Caller
from agentloom.steps.conversation import Conversation, Turn, leading_system, sent, turn
from agentloom.steps.trimming import SUMMARY_TEMPERATURE, SUMMARY_TOKENS, Summarize, summary_turn, trimmed

_ASKED = (
    "Sum up this conversation for somebody who goes on with it: names, facts, decisions, and what is still open. "
    "At most 150 words, and nothing but the summary."
)


class Opened(NamedTuple):
    """A turn that begins: the messages that are sent, the conversation with the user's turn in it, and what is told of it in numbers."""

    messages: list[Message]
    conversation: Conversation
    told: dict[str, JSON]

    def answered(self, text: str, speaker: str | None) -> dict[str, JSON]:
        """Return the conversation as it is written back, with the model's answer; an empty answer leaves no turn."""
        found = self.conversation.plus(turn("assistant", text, speaker)) if text.strip() else self.conversation
        return found.to_json()


async def open_turn(
    conversation: Conversation,
    system: str | None,
    prompt: str | None,
    *,
    own_system: bool,
    speaker: str | None,
    attachments: Sequence[Attachment],
    summarize: Summarize,
) -> Opened:
    """Return the beginning of a turn. Without a prompt, the last turn of the conversation is what is answered.

    The system prompt becomes the conversation's first message if it has no system message yet; with ``own_system`` it is sent with this turn
    and not kept. Raises ``StepError``, permanent, when there is nothing to answer, or when the budget is too small for the turn.
    """
    if system and not own_system and not any(message["role"] == "system" for message in conversation.messages):
        conversation = conversation._replace(messages=(turn("system", system), *conversation.messages))
    added: list[Turn] = [turn("user", prompt, speaker)] if prompt is not None else []
    if not added:
        conversation, added = _split(conversation)
    own = [turn("system", system)] if system and own_system else []
    fitting = await trimmed(conversation, [*own, *added], summarize)
    conversation = fitting.conversation
    pinned = leading_system(conversation.messages)
    summary = [] if conversation.summary is None else [summary_turn(conversation.summary)]
    messages = sent([*conversation.messages[:pinned], *own, *summary, *conversation.messages[pinned:], *added])
    if attachments:
        last = messages[-1]
        if last.role != "user":
            raise StepError(
                "attachments go along with a user's turn, and the conversation ends with a tool's; give the step a `prompt`"
            )
        messages[-1] = Message(last.role, last.content, name=last.name, attachments=tuple(attachments))
    conversation = conversation.plus(*added)
    told = {"turns": len(conversation.messages), "tokens": fitting.tokens, "dropped": fitting.dropped}
    return Opened(messages, conversation, told)


def _split(conversation: Conversation) -> tuple[Conversation, list[Turn]]:
    """Return a conversation without the turn that is to be answered, and that turn: a user's, or results of tools with their calls."""
    messages = conversation.messages
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] != "system"), None)
    if last is None or messages[last]["role"] not in ("user", "tool"):
        found = "has no turns yet" if last is None else "ends with the assistant's turn"
        raise StepError(f"the conversation {found}; give the step a `prompt`, or let the last turn be the user's")
    while last and messages[last]["role"] == "tool":
        last -= 1
    return conversation._replace(messages=messages[:last]), list(messages[last:])


def summarizer(caller: Caller, path: str) -> Summarize:
    """Return what sums up transcripts with one more call of a step's model; where that fails, the transcript has to do."""

    async def summarize(transcript: str) -> str:
        messages = [Message("system", _ASKED), Message("user", transcript)]
        try:
            response = await caller.ask(
                messages,
                step_id=f"{path}::summarize",
                max_tokens=SUMMARY_TOKENS,
                temperature=SUMMARY_TEMPERATURE,
                stream=False,
                tools=(),
                reply_format=None,
                reasoning=None,
            )
        except RecordingMismatchError:
            raise
        except ProviderError as error:
            caller.attempt.warn(f"the conversation could not be summarized, so its beginning is cut: {error}")
            return ""
        return response.content

    return summarize
