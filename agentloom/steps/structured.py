"""Replies that must have a form: taken out of the text, checked, and asked for again where they don't fit."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from agentloom.core.plain import NotPlain, plain
from agentloom.errors import StepError, ValidationError
from agentloom.providers.base import Message, ReplyFormat, Response
from agentloom.providers.surroundings import current_attempt, current_secrets
from agentloom.steps.tool_loop import assistant_turn
from agentloom.tools.replies import Form, any_object, fitting, like_class

if TYPE_CHECKING:
    from agentloom.model.llm import ResponseSchema

LONGEST_FAULTS = 800
"""How much of what is wrong with a reply the model is told, in characters."""

LONGEST_REPLY = 20_000
"""How much of a reply that doesn't fit is sent back, in characters."""

_TRIES = 50
"""At how many braces an object is looked for in a text."""


class Wanted(NamedTuple):
    """The form that a reply must have: what checks it, and what the provider is told of it."""

    form: Form
    format: ReplyFormat


class NoJson(Exception):
    """A reply holds no JSON that can be used; its text says why."""


def wanted_of(schema: ResponseSchema, step_id: str, folder: str | None) -> Wanted:
    """Return what a `response_schema` asks for; classes are imported, from ``folder`` as well. Raises ``StepError``, permanent."""
    try:
        if schema.type == "pydantic":
            form = like_class(schema.model or "", folder)
        elif schema.type == "json_schema":
            form = fitting(schema.inline or {})
        else:
            form = any_object()
    except ValidationError as error:
        raise StepError(f"`response_schema`: {error}") from error
    name = re.sub("[^A-Za-z0-9_-]", "_", schema.name or step_id)[:64] or "reply"
    return Wanted(
        form,
        ReplyFormat(
            "json_schema" if form.schema else "json_object", form.schema, name, schema.description or "", schema.strict
        ),
    )


async def settle(
    response: Response,
    messages: list[Message],
    wanted: Wanted,
    retries: int,
    ask: Callable[[list[Message]], Awaitable[Response]],
) -> tuple[Response, Any]:
    """Return the reply that fits and the value in it; ``response`` is the first one, ``messages`` what it answered.

    A reply that doesn't fit is asked for again with ``ask``, at most ``retries`` times, together with what is wrong with it; a model that is
    told so forgets what it has said, so only the last of them goes along. Raises ``StepError``, permanent, when none fits.
    """
    for left in range(retries, -1, -1):
        value, faults = check_reply(response.content, wanted.form)
        if not faults:
            return response, value
        if not left:
            attempt = current_attempt()
            if attempt is not None:
                current_secrets().learn(attempt.path, value)  # the faults quote it
            break
        response = await ask([*messages, *_again(response, faults)])
    tries = f" after {retries + 1} tries" if retries else ""
    raise StepError(f"the reply doesn't fit `response_schema`{tries}: {_listed(faults, '; ')}")


def check_reply(text: str, form: Form) -> tuple[Any, list[str]]:
    """Return the value in a reply, and what is wrong with it. Raises ``StepError`` for a schema that can't be used."""
    try:
        value = read_json(text)
    except NoJson as error:
        return None, [str(error)]
    try:
        value, faults = form.check(value)
        return plain(value, "reply"), faults
    except NotPlain as error:
        return None, [str(error)]
    except ValidationError as error:
        raise StepError(f"`response_schema`: {error}") from error


def read_json(text: str) -> Any:
    """Return the JSON in a reply: the whole text, else what a fence holds, else the first object.

    The text may lack its first brace: some providers are given it as the beginning of their reply. Raises ``NoJson``.
    """
    if not text.strip():
        raise NoJson("the reply is empty; it must be JSON")
    why = "the reply holds no JSON object"
    for candidate in _candidates(text):
        try:
            return plain(json.loads(candidate, parse_constant=_refuse), "reply")
        except NotPlain as error:
            why = str(error)
        except RecursionError:
            why = "the reply nests too deep"
        except ValueError:
            pass
    raise NoJson(why)


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of a reply that may be its JSON, the likeliest first."""
    yield text
    yield "{" + text
    fence = re.search(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", text, re.DOTALL)
    if fence is not None:
        yield fence[1]
        yield "{" + fence[1]
    yield from _objects("{" + text)


def _objects(text: str) -> Iterator[str]:
    """Yield the objects in a text, from left to right; the work is bounded, however many braces there are."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start, work = 0, 4 * len(text)
    for _ in range(_TRIES):
        start = text.find("{", start)
        if start < 0 or work < 0:
            return
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            work -= error.pos - start
        except (ValueError, RecursionError):
            work -= len(text) - start
        else:
            yield text[start:end]
            work -= end - start
        start += 1


def _refuse(name: str) -> Any:
    raise ValueError(f"`{name}` is no JSON")


def _again(response: Response, faults: list[str]) -> list[Message]:
    text = response.content
    if len(text) > LONGEST_REPLY:
        cut = f"{text[:LONGEST_REPLY]}\n[cut here: these are the first {LONGEST_REPLY} of {len(text)} characters]"
        bad = Message("assistant", cut)
    else:
        bad = assistant_turn(response) if text else Message("assistant", "(empty)")
    listed = _listed([f"- {fault}" for fault in faults], "\n")
    return [
        bad,
        Message("user", f"That reply can't be used:\n{listed}\nReply again, with nothing but the corrected JSON."),
    ]


def _listed(faults: list[str], between: str) -> str:
    text = between.join(faults)
    return text if len(text) <= LONGEST_FAULTS else text[: LONGEST_FAULTS - 1] + "…"
