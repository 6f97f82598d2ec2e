"""What every wire format of the loopback server says of itself, and what a test has the model say."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

REPLY = "Grüße 👋 from the wire.\nSecond line, “quoted”."
KEY = "sk-test-0123456789abcdef"
Known = Mapping[str, type | tuple[type, ...]]
"""The fields that an object may have, and the types of each."""


@dataclass(frozen=True)
class Received:
    """One request as it came in. Header names are in lower case; ``connection`` counts from 1."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> dict[str, Any]:
        """The body, parsed."""
        return json.loads(self.body)


class Refused(Exception):
    """The request is not of the wire format."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Call(NamedTuple):
    """A tool call that the model makes; ``arguments`` is the text that it writes."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Say:
    """One reply of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """A wire format: checks requests, and writes answers.

    ``first`` is the number of the frame with the first words of a streamed answer, ``stream_type`` the content type of one.
    """

    first: int
    stream_type: str

    def check(self, received: Received, key: str | None, *, own: bool) -> dict[str, Any]:
        """Return the request's JSON. Raises ``Refused`` for whatever the wire format doesn't know."""
        ...

    def whole(self, received: Received, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the whole answer."""
        ...

    def frames(self, request: dict[str, Any], say: Say) -> list[bytes]:
        """Return a streamed answer, event by event, as bytes."""
        ...

    def frame(self, data: str) -> bytes:
        """Return one event of that data."""
        ...

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """Return the body of a refusal."""
        ...

    def streams(self, request: dict[str, Any]) -> bool:
        """Tell whether a request asks for a stream."""
        ...


def json_body(received: Received) -> dict[str, Any]:
    """Return the body, which has to be a JSON object. Raises ``Refused``."""
    try:
        body = json.loads(received.body)
    except ValueError:
        raise Refused(400, "We could not parse the JSON body of your request") from None
    if not isinstance(body, dict):
        raise Refused(400, "The body must be an object")
    return body


def check_fields(value: Any, known: Known, needed: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return an object whose fields are all known, of the right type, and none missing. Raises ``Refused``."""
    if not isinstance(value, dict):
        raise Refused(400, f"Invalid type for '{where}': expected an object")
    for name, item in value.items():
        path = f"{where}.{name}" if where else name
        wanted = known.get(name)
        if wanted is None:
            raise Refused(400, f"Unrecognized request argument supplied: {path}")
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if not isinstance(item, wanted) or (isinstance(item, bool) and bool not in wanted):
            raise Refused(400, f"Invalid type for '{path}'")
    for name in needed:
        if value.get(name) in (None, "", []):
            raise Refused(
                400,
                f"Missing required parameter: '{where}.{name}'" if where else f"Missing required parameter: '{name}'",
            )
    return value


def check_base64(text: Any, where: str) -> bytes:
    """Return what base64 holds. Raises ``Refused``."""
    try:
        found = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        found = b""
    if not found:
        raise Refused(400, f"Invalid base64 in '{where}'")
    return found


def words_in(value: Any) -> int:
    """Return about how many words stand in the texts of a value."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, dict):
        return sum(words_in(item) for key, item in value.items() if key in ("text", "content"))
    return sum(map(words_in, value)) if isinstance(value, list) else 0


def vector(text: str, dimensions: int) -> list[float]:
    """Return a vector that tells its text: the length, then halves and quarters that 32-bit floats hold exactly."""
    return [float(len(text)), *(((-1) ** at) * (at % 7) / 4 for at in range(1, dimensions))]


def pieces_of(text: str, size: int = 8) -> list[str]:
    """Cut a text into pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]
