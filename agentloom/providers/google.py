"""Google's wire format (`:generateContent`, `:streamGenerateContent`, `:batchEmbedContents`).

The key goes in the header `x-goog-api-key`, never in the address, which lands in logs and errors.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from agentloom.providers.base import (
    Attachment,
    EmbeddingRequest,
    Message,
    ReplyFormat,
    Request,
    ToolCall,
    Usage,
)
from agentloom.providers.http import endpoint
from agentloom.providers.rates import tokens_of_texts
from agentloom.providers.reading import count_of, read_arguments
from agentloom.providers.schemas import Unspeakable, google_schema, in_words
from agentloom.providers.secret import Secret
from agentloom.providers.vectors import Embedded, VectorProvider, vector_of
from agentloom.providers.wire import (
    OPENING,
    Reply,
    Sent,
    level_of,
    merged,
    room_for,
    speakers,
    spoken,
    with_room,
)

STOPS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
}

MISCALLED = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
"""The model wrote a call that the server could not read; the next attempt most likely goes well."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""What stands for the signature of a call that no model of Google's made: of another provider, or of a written conversation."""

MEDIA_TYPES = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
"""Media types by the names that the documentation uses."""

OWN_ID = "call-"
"""How the ids begin of calls that came without one."""


class GoogleProvider(VectorProvider[Reply]):
    """A client of the Gemini API, or of a server that speaks like it."""

    vendor = "google"
    reply_type = Reply
    version = "/v1(beta)?"

    def _headers(self, key: Secret | None) -> Mapping[str, str]:
        return {} if key is None else {"x-goog-api-key": key.value}

    def lacks(self, request: Request) -> str | None:
        """Return what of a request the API doesn't take: addresses of attachments."""
        if any(each.url for each in request.attachments):
            return "takes attachments only as data, not by their address; set `fetch: local`"
        return None

    def _embedding_sent(self, request: EmbeddingRequest, texts: Sequence[str]) -> Sent:
        name = self._resource(request.model)
        size = {} if request.dimensions is None else {"outputDimensionality": request.dimensions}
        asked = [{"model": name, "content": {"parts": [{"text": text}]}, **size} for text in texts]
        return Sent(self._address(request.model, "batchEmbedContents"), {"requests": asked})

    def _embedded(self, data: Mapping[str, Any], texts: Sequence[str]) -> Embedded:
        """Return what an answer holds. A server that tells no tokens is billed by the length of the texts."""
        usage = data.get("usageMetadata")
        told = count_of(usage, "promptTokenCount") if isinstance(usage, Mapping) else 0
        tokens = told or tokens_of_texts(texts)
        return Embedded(self._vectors(data, len(texts)), Usage(tokens, 0, tokens))

    def _vectors(self, data: Mapping[str, Any], wanted: int) -> list[list[float]]:
        found = data.get("embeddings")
        if not isinstance(found, list) or len(found) != wanted:
            raise self._http.error(f"the answer has no `embeddings` of {wanted} texts")
        vectors = [vector_of(each.get("values") if isinstance(each, Mapping) else None) for each in found]
        checked = [vector for vector in vectors if vector is not None]
        if len(checked) != wanted:
            raise self._http.error("the answer's `embeddings` are not all lists of numbers")
        return checked

    @staticmethod
    def _resource(model: str) -> str:
        """Return the name of a model's resource: `models/…`, unless it names another collection."""
        return model if "/" in model else f"models/{model}"

    def _address(self, model: str, operation: str) -> str:
        return endpoint(self._base, f"/v1beta/{quote(self._resource(model), safe='/')}:{operation}")

    def _sent(self, request: Request) -> Sent:
        system = [turn.content for turn in request.messages if turn.role == "system" and turn.content]
        config: dict[str, Any] = {}
        if request.temperature is not None:
            config["temperature"] = request.temperature
        if request.max_tokens is not None:
            config["maxOutputTokens"] = request.max_tokens
        _add_thinking(request, config)
        can_call = bool(request.tools) and generation_of(request.model) < 3
        _ask_for_format(request.reply_format, config, system, only_words=can_call)
        payload: dict[str, Any] = {
            "contents": [{"role": role, "parts": parts} for role, parts in self._turns(request)],
        }
        if system:
            payload["systemInstruction"] = {"parts": [{"text": text} for text in system]}
        _add_tools(request, payload)
        if config:
            payload["generationConfig"] = config
        if not request.stream:
            return Sent(self._address(request.model, "generateContent"), payload)
        url = self._address(request.model, "streamGenerateContent")
        return Sent(f"{url}{'&' if '?' in url else '?'}alt=sse", payload)

    def _turns(self, request: Request) -> list[tuple[str, list[dict[str, Any]]]]:
        names = speakers(request.messages)
        turns = merged(
            ("model", self._said(turn, request.model, names))
            if turn.role == "assistant"
            else ("user", _asked(turn, names))
            for turn in request.messages
            if turn.role != "system"
        )
        if turns and turns[0][0] == "model":
            turns.insert(0, ("user", [{"text": OPENING}]))
        return turns

    def _said(self, turn: Message, model: str, names: frozenset[str]) -> list[dict[str, Any]]:
        """Return a model's turn: as it came, if it came from this model, since signatures must come back where they stood."""
        carried = turn.carried.get(self.name)
        if isinstance(carried, Mapping) and carried.get("model") == model:
            return list(carried["parts"])
        text = spoken(turn, names)
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for number, call in enumerate(turn.tool_calls):
            part: dict[str, Any] = {"functionCall": {**_id(call.id), "name": call.name, "args": dict(call.arguments)}}
            if number == 0 and generation_of(model) >= 3:
                part["thoughtSignature"] = NO_SIGNATURE
            parts.append(part)
        return parts

    def _take_whole(self, data: Mapping[str, Any], reply: Reply) -> None:
        reply.pieces.extend(self._take_event(data, reply))
        if reply.finish_reason is None and not reply.parts:
            raise self._http.error("the answer has no `candidates[0].content`")

    def _take_event(self, data: Mapping[str, Any], reply: Reply) -> Iterable[str]:
        version = data.get("modelVersion")
        if isinstance(version, str) and version:
            reply.model = version
        _note_usage(data.get("usageMetadata"), reply)
        candidates = data.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, Mapping):
            self._raise_blocked(data)
            return []
        content = candidate.get("content")
        parts = content.get("parts", []) if isinstance(content, Mapping) else []
        if not isinstance(parts, list):
            raise self._http.error("the answer's `parts` are not a list")
        pieces = [piece for part in parts if isinstance(part, dict) for piece in self._take_part(part, reply)]
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason:
            if reason in MISCALLED:
                raise self._http.error(f"the model's call of a tool can't be read ({reason})")
            reply.finish_reason = STOPS.get(reason, reason.lower())
        return pieces

    def _take_part(self, part: dict[str, Any], reply: Reply) -> Iterable[str]:
        text = part.get("text")
        if text is not None and not isinstance(text, str):
            raise self._http.error("the answer's `text` is not a text")
        if part.get("text") != "" or len(part) > 1:
            reply.parts.append(dict(part))
        if part.get("thought") is True:
            reply.reasoning.append(text or "")
            return ()
        return (text,) if text else ()

    def _finish(self, reply: Reply, request: Request) -> None:
        """Read the calls, and what must come back with them. A call without an id gets one that no other of the conversation has."""
        before = sum(len(turn.tool_calls) for turn in request.messages)
        for part in reply.parts:
            call = part.get("functionCall")
            if not isinstance(call, Mapping):
                continue
            name, told = call.get("name"), call.get("id")
            if not isinstance(name, str) or not name:
                raise self._http.error("the answer's `functionCall` has no `name`")
            arguments, fault = read_arguments(call.get("args"))
            id_ = told if isinstance(told, str) and told else f"{OWN_ID}{before + len(reply.calls) + 1}"
            reply.calls.append(ToolCall(id_, name, arguments, fault))
        if reply.calls:
            if reply.finish_reason == "stop":
                reply.finish_reason = "tool_calls"
            reply.carried = {"model": request.model, "parts": _joined(reply.parts)}

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        """Raise the error that a server reports inside an answer that began well."""
        error = data.get("error")
        if not error:
            return
        found = error if isinstance(error, Mapping) else {"message": error}
        code, message = found.get("code"), str(found.get("message") or "no reason given")
        if type(code) is int and 400 <= code < 600:
            raise self._http.api_error(code, json.dumps({"error": found}))
        raise self._http.error(f"the server reports an error: {self._http.shown(message)}")

    def _raise_blocked(self, data: Mapping[str, Any]) -> None:
        """Raise the refusal of a prompt, which comes with a status of 200."""
        feedback = data.get("promptFeedback")
        reason = feedback.get("blockReason") if isinstance(feedback, Mapping) else None
        if reason:
            raise self._http.error(f"the prompt is blocked: {self._http.shown(str(reason))}", permanent=True)


def _joined(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts of a turn as they go back: without thoughts, and with neighbours that are only text in one."""
    found: list[Mapping[str, Any]] = []
    texts: list[str] = []
    for part in [*parts, None]:
        if part is not None and set(part) == {"text"}:
            texts.append(part["text"])
            continue
        if texts:
            found.append({"text": "".join(texts)})
            texts = []
        if part is not None and not part.get("thought"):
            found.append(part)
    return found


def generation_of(model: str) -> int:
    """Return the generation in a Gemini model's name: `gemini-2.5-flash` is of the second; a name without a number is of the newest."""
    found = re.search(r"gemini-(\d+)", model.lower())
    return int(found.group(1)) if found else 99


def _asked(turn: Message, names: frozenset[str]) -> list[dict[str, Any]]:
    """Return a user's or a tool's turn as parts; what is looked at stands before what is asked about it."""
    if turn.role == "tool":
        answer = {"error" if turn.is_error else "result": turn.content}
        return [{"functionResponse": {**_id(turn.tool_call_id), "name": turn.name or "", "response": answer}}]
    text = spoken(turn, names)
    parts = [_attached(each) for each in turn.attachments]
    return [*parts, *([{"text": text}] if text or not parts else [])]


def _id(written: str | None) -> dict[str, str]:
    """Return the id of a call as a field; none where the model gave none, and its results are told apart by their order."""
    return {} if not written or written.startswith(OWN_ID) else {"id": written}


def _attached(attachment: Attachment) -> dict[str, Any]:
    media_type = MEDIA_TYPES.get(attachment.media_type, attachment.media_type)
    return {"inlineData": {"mimeType": media_type, "data": b64encode(attachment.data).decode("ascii")}}


def _add_thinking(request: Request, config: dict[str, Any]) -> None:
    """Ask for thinking: by a budget before the third generation, by a level from the fourth on, and by either in between."""
    reasoning = request.reasoning
    if reasoning is None:
        return
    generation, budget, level = generation_of(request.model), reasoning.budget_tokens, reasoning.level
    asked: dict[str, Any] = {"includeThoughts": budget != 0}
    if budget is not None and generation < 4:
        asked["thinkingBudget"] = budget
    elif level is not None and generation < 3:
        asked["thinkingBudget"] = room_for(reasoning)
    elif level is not None or (budget is not None and budget >= 0):
        asked["thinkingLevel"] = level or level_of(budget or 0)  # there is no level for none at all
    if budget != 0 and request.max_tokens is not None:
        config["maxOutputTokens"] = with_room(request.max_tokens, room_for(reasoning))
    config["thinkingConfig"] = asked


def _ask_for_format(wanted: ReplyFormat | None, config: dict[str, Any], system: list[str], *, only_words: bool) -> None:
    """Ask for the form of the reply; with ``only_words`` the API isn't told, which before the third generation refuses it beside tools."""
    if wanted is None:
        return
    if wanted.description:
        system.append(wanted.description)
    if only_words:
        system.append(in_words(wanted))
        return
    config["responseMimeType"] = "application/json"
    if wanted.type == "json_object":
        return
    try:
        config["responseSchema"] = google_schema(wanted.schema)
    except Unspeakable:
        system.append(in_words(wanted))


def _add_tools(request: Request, payload: dict[str, Any]) -> None:
    if not request.tools:
        return
    declared: list[dict[str, Any]] = []
    for tool in request.tools:
        one: dict[str, Any] = {"name": tool.name, "description": tool.description}
        try:
            schema = google_schema(tool.parameters)
        except Unspeakable:
            one["parametersJsonSchema"] = dict(tool.parameters)
        else:
            if schema.get("properties"):  # an object without any is refused
                one["parameters"] = schema
        declared.append(one)
    payload["tools"] = [{"functionDeclarations": declared}]
    choice = request.tool_choice
    if choice.mode == "none":
        payload["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    elif choice.mode == "required":
        payload["toolConfig"] = {"functionCallingConfig": {"mode": "ANY"}}
    elif choice.mode == "tool":
        payload["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [choice.name]}}


def _note_usage(data: Any, reply: Reply) -> None:
    """Note the tokens, of which each event tells the sum so far. Thoughts are counted apart; here they are part of the reply."""
    if not isinstance(data, Mapping):
        return
    thoughts = count_of(data, "thoughtsTokenCount")
    prompt = count_of(data, "promptTokenCount") + count_of(data, "toolUsePromptTokenCount")
    completion = count_of(data, "candidatesTokenCount") + thoughts
    reply.usage = Usage(prompt, completion, count_of(data, "totalTokenCount") or prompt + completion, thoughts)
