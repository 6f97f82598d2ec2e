"""Attachments of a step: from what the file names to the bytes, or the address, that go along with the prompt."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import anyio

from agentloom.core.kinds import Attempt, Services
from agentloom.core.runner import Op
from agentloom.errors import AttachmentResolutionError, SecurityError, StepError, ValidationError
from agentloom.language.paths import Part
from agentloom.language.rendering import render
from agentloom.language.template import parse_template
from agentloom.model.sources import source_kind
from agentloom.providers.base import Attachment, AttachmentKind
from agentloom.providers.hashes import download_key
from agentloom.providers.replies import Mismatch
from agentloom.providers.surroundings import current_attempt
from agentloom.steps.media import by_content, by_name, fits
from agentloom.tools.addresses import Reach, read_target
from agentloom.tools.files import read_file

if TYPE_CHECKING:
    from agentloom.model.llm import Attachment as Written

MOST_MB = 20
MOST_BYTES = MOST_MB * 1024 * 1024
"""The largest attachment; no provider takes a larger one in a request."""

_TOO_LARGE = f"it is larger than {MOST_MB} MB"
_SHOWN = 80


def sources_read(attachments: Iterable[Written] | None) -> Iterator[tuple[Part, ...]]:
    """Yield the paths of the state that the sources read."""
    for attachment in attachments or ():
        for placeholder in parse_template(attachment.source).placeholders:
            yield placeholder.parts


async def resolve(
    attachments: Sequence[Written] | None, op: Op, services: Services, attempt: Attempt
) -> tuple[Attachment, ...]:
    """Return a step's attachments, ready to be sent, in their order; downloads run at the same time.

    Raises ``AttachmentResolutionError``, permanent, for one that is refused, can't be read, is too large or is of another kind than
    it says; ``TemplateError`` for a broken template.
    """
    if not attachments:
        return ()
    written = tuple(attachments)
    sources = [render(each.source, op.inputs, warn=attempt.warn).strip() for each in written]
    if len(written) < 2:
        return tuple([await _one(source, each, services) for source, each in zip(sources, written, strict=True)])
    found: list[Attachment | Exception] = [StepError("not resolved")] * len(written)

    async def put(at: int) -> None:
        try:
            found[at] = await _one(sources[at], written[at], services)
        except Exception as error:
            found[at] = error  # raised below, so that the first in the file is told, not the first that failed

    async with anyio.create_task_group() as group:
        for at in range(len(written)):
            group.start_soon(put, at)
    for each in found:
        if isinstance(each, Exception):
            raise each
    return tuple(each for each in found if isinstance(each, Attachment))


async def _one(source: str, written: Written, services: Services) -> Attachment:
    try:
        return await _resolved(source, written, services)
    except (OSError, SecurityError, ValidationError) as error:
        raise AttachmentResolutionError(f"attachment {_named(source)}: {_reason(error)}") from error


async def _resolved(source: str, written: Written, services: Services) -> Attachment:
    """Return one attachment. Raises ``OSError``, ``SecurityError`` and ``ValidationError``, in words that follow its name."""
    if not source:
        raise ValidationError("`source` is empty")
    told = _told_type(written)
    served = named = ""
    if (kind := source_kind(source)) == "url":
        reach = reach_of(services)
        named = by_name(re.split("[?#]", source)[0])
        if written.fetch == "provider":
            reach.look_at(read_target(source))
            return Attachment(written.type, told or (named if fits(named, written.type) else ""), url=source)
        if services.gateway.offline:
            return _recorded(source, written, services)
        from agentloom.tools.download import download

        data, served = await download(source, reach, MOST_BYTES)
    elif kind == "data":
        data, served = _of_data_url(source)
    elif kind == "base64":
        data = _of_base64(source)
    else:
        data, named = _read(source, services), by_name(source)
    if len(data) > MOST_BYTES:
        raise OSError(_TOO_LARGE)
    if not data:
        raise OSError("it is empty")
    media_type = _media_type(written.type, told, by_content(data), (served, named))
    return Attachment(written.type, media_type, data, origin=source if kind == "url" else "")


def _recorded(source: str, written: Written, services: Services) -> Attachment:
    """Return what stands for a download in a replay. Raises ``RecordingMismatchError`` when the recording knows none from there."""
    found = services.gateway.downloads.get(download_key(source))
    if found is None:
        attempt = current_attempt()
        why = f"it holds no download of attachment {_named(source)}"
        raise Mismatch(attempt.path if attempt else "", "missing", why).error("")
    return Attachment(written.type, found["media_type"], origin=source, digest=found["sha256"])


def reach_of(services: Services) -> Reach:
    """Return what may be downloaded: nothing internal but what `allowed_domains` names, and nothing else at all while the sandbox is on."""
    if services.policy is not None:
        return services.policy.reach("attachment")
    listed = () if services.sandbox is None else tuple(services.sandbox.allowed_domains)
    return Reach("attachment", trusted=listed)


def _read(source: str, services: Services) -> bytes:
    if "\0" in source:
        raise ValidationError("a path holds no NUL")
    place = (services.folder or Path()) / source
    try:
        return read_file(place, services.policy, "attachment", MOST_BYTES, _line(source))
    except FileNotFoundError:
        raise OSError("the file does not exist") from None
    except UnicodeError:
        raise ValidationError("a path holds no half of a surrogate pair") from None


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, SecurityError) and ("internal address" in text or "this machine" in text):
        return f"{text}; list its host in `config.sandbox.allowed_domains` if that is meant"
    return text


def _of_data_url(source: str) -> tuple[bytes, str]:
    """Return the content and the media type of a `data:` URL."""
    head, comma, body = source[5:].partition(",")
    if not comma:
        raise ValidationError("a `data:` URL needs a comma before its content")
    media_type, *parameters = [part.strip().lower() for part in head.split(";")]
    if "base64" in parameters:
        return _of_base64(body if "%" not in body else unquote_to_bytes(body).decode("latin-1")), media_type
    return unquote_to_bytes(body), media_type


def _of_base64(text: str) -> bytes:
    packed = "".join(text.split())
    if len(packed) * 3 // 4 > MOST_BYTES + 2:
        raise OSError(_TOO_LARGE)
    try:
        return base64.b64decode(packed.encode("ascii") + b"=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, UnicodeError):
        raise ValidationError("its base64 is broken") from None


def _told_type(written: Written) -> str | None:
    """Return the media type that the file says. Raises ``ValidationError`` when it is none, or none of its kind."""
    if written.media_type is None:
        return None
    told = written.media_type.strip().lower()
    if not re.fullmatch(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+", told):
        raise ValidationError(f"`media_type: {written.media_type}` is no media type; write one such as `image/png`")
    if not fits(told, written.type):
        raise ValidationError(f"`{told}` does not fit `type: {written.type}`")
    return told


def _media_type(kind: AttachmentKind, told: str | None, seen: str, guessed: Sequence[str]) -> str:
    """Return the media type: what the file says, else what the content is, else what server or name tell."""
    if told is not None and (not seen or fits(seen, kind)):
        return told
    if seen:
        if not fits(seen, kind):
            raise ValidationError(f"its content is `{seen}`, which does not fit `type: {kind}`")
        return seen
    for guess in guessed:
        if guess and fits(guess, kind):
            return guess
    if kind == "pdf":
        raise ValidationError("its content is no PDF")
    raise ValidationError(f"its content is of no known kind of {kind}; set `media_type` if it is one")


def _named(source: str) -> str:
    """Return how messages call a source: without content, and without what may be secret in an address."""
    kind = source_kind(source)
    if kind == "data":
        return f"`{source[:5]}{source[5:45].partition(',')[0]},…`"
    if kind == "base64":
        return f"`{source[:8]}…` (base64)"
    if kind == "url":
        scheme, _, rest = source.partition("://")
        source = f"{scheme}://{re.split('[?#]', rest)[0].rpartition('@')[2]}"
    return f"`{_line(source)}`"


def _line(text: str) -> str:
    """Return the beginning of a text, fit for one line."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[: _SHOWN + 1])
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
