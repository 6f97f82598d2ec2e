"""What clients of model APIs have in common, whatever the wire format: one call from request to response, streamed or not."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import anyio

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    BaseProvider,
    Message,
    OnDelta,
    Reasoning,
    Request,
    Response,
    ToolCall,
    Usage,
)
from agentloom.providers.http import DRAIN_SECONDS, MAX_REPLY_BYTES, HttpClient
from agentloom.providers.pricing import PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.sse import Event
from agentloom.providers.table import BY_NAME, ProviderSpec

LEVEL_TOKENS: Mapping[str, int] = {"low": 1024, "medium": 8192, "high": 24576}
"""The budget in tokens that a level of reasoning stands for, where a model takes budgets only: Google's own correspondence."""

OPENING = "(The conversation goes on.)"
"""The user turn before an assistant turn that would be the first: formats that begin with the user take no other."""


class Sent(NamedTuple):
    """A call as it goes out. ``begun`` is the beginning of the reply that the request itself wrote, and the model goes on from."""

    url: str
    payload: Mapping[str, Any]
    begun: str = ""


@dataclass(slots=True)
class Reply:
    """What has arrived of one answer. ``finish_reason`` is in OpenAI's words where they fit; ``parts`` is for the wire format's own use."""

    pieces: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    carried: Any = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    first_ms: float | None = None
    begun: str = ""
    done: bool = False


R = TypeVar("R", bound=Reply)


class WireProvider(BaseProvider, Generic[R]):
    """A client of one server. A wire format says how a request goes out and how an answer is read; connections are opened by the first call.

    ``vendor`` gives the name, the address and the time limit where none are given; ``reply_type`` is the class of the format's replies.
    ``version`` is a pattern for the end of a base address that the format's own paths say again. A stream is server-sent events, or
    with ``lines`` one event a line; it ends with ``end_mark`` where there is one, else where ``_take_event`` says so.
    """

    vendor: ClassVar[str]
    reply_type: type[R]
    version: ClassVar[str] = ""
    lines: ClassVar[bool] = False
    end_mark: ClassVar[str] = ""

    def __init__(
        self,
        base_url: str | None = None,
        key: Secret | None = None,
        *,
        name: str = "",
        spec: ProviderSpec | None = None,
        prices: PriceTable | None = None,
        timeout: float | None = None,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.name = name or self.vendor
        self._spec = spec or BY_NAME[self.vendor]
        address = (self._spec.default_url or "") if base_url is None else base_url
        self._base = re.sub(rf"{self.version}(?=$|\?)", "", address) if self.version else address
        self._prices = prices or PriceTable()
        self._http = HttpClient(
            self.name,
            headers=self._headers(key),
            key=key,
            timeout=self._spec.timeout if timeout is None else timeout,
            max_bytes=max_bytes,
        )
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def serves(self, model: str) -> bool:
        """Tell whether the provider takes a model of that name."""
        return self._spec.serves(model)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call; see ``Provider``."""
        sent = self._sent(request)
        reply = self.reply_type(begun=sent.begun)
        started = perf_counter()
        if request.stream:
            await self._stream(sent, request.headers, reply, started, on_delta)
        else:
            data = await self._http.post(sent.url, sent.payload, request.headers)
            self._raise_error_in(data)
            self._take_whole(data, reply)
        self._finish(reply, request)
        return Response(
            content="".join(reply.pieces),
            model=reply.model or request.model,
            provider=self.name,
            usage=reply.usage,
            cost_usd=self._prices.cost((request.model, reply.model), reply.usage),
            finish_reason=reply.finish_reason,
            latency_ms=(perf_counter() - started) * 1000,
            time_to_first_token_ms=reply.first_ms,
            tool_calls=tuple(reply.calls),
            reasoning="".join(reply.reasoning) or None,
            carried={} if reply.carried is None else {self.name: reply.carried},
        )

    def _headers(self, key: Secret | None) -> Mapping[str, str]:
        """Return the headers that go with every request, the key among them."""
        return {} if key is None else {"Authorization": f"Bearer {key.value}"}

    @abstractmethod
    def _sent(self, request: Request) -> Sent:
        """Return a request in the wire format. Raises ``ProviderError``, permanent, for one that it has no words for."""

    @abstractmethod
    def _take_whole(self, data: Mapping[str, Any], reply: R) -> None:
        """Take a whole answer. Raises ``ProviderError`` when it is none."""

    @abstractmethod
    def _take_event(self, data: Mapping[str, Any], reply: R) -> Iterable[str]:
        """Take one event of a stream; return the pieces of text in it. Sets ``reply.done`` where the format marks the end."""

    @abstractmethod
    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        """Raise the error that a server reports inside an answer that began well, if there is one."""

    def _finish(self, reply: R, request: Request) -> None:
        """Make what has arrived a reply: calls, and what is carried back."""

    async def _stream(
        self, sent: Sent, headers: Mapping[str, str], reply: R, started: float, on_delta: OnDelta | None
    ) -> None:
        end_mark = self.end_mark
        async with self._http.stream(sent.url, sent.payload, headers, lines=self.lines) as events:
            try:
                async for event in events:
                    if end_mark and event.data.strip() == end_mark:
                        reply.done = True
                        break
                    for piece in self._take_event(self._data_of(event), reply):
                        if reply.first_ms is None:
                            reply.first_ms = (perf_counter() - started) * 1000
                        reply.pieces.append(piece)
                        if on_delta is not None:
                            await on_delta(piece)
                    if reply.done and not end_mark:
                        break
            except ProviderError as error:
                if reply.finish_reason is None or error.permanent or error.status_code is not None:
                    raise
                return  # the reply is whole; that its connection isn't ended properly costs it nothing
            with anyio.move_on_after(DRAIN_SECONDS):
                async for _ in events:
                    pass  # read to the end, so that the connection can be used again
        if not reply.done and reply.finish_reason is None:
            raise self._broke_off()

    def _data_of(self, event: Event) -> dict[str, Any]:
        try:
            data = self._http.json_object(event.data)
        except ProviderError:
            if event.complete:
                raise
            raise self._broke_off() from None
        self._raise_error_in(data)
        return data

    def _broke_off(self) -> ProviderError:
        return self._http.error("the answer broke off before its end")

    def _warn_once(self, message: str) -> None:
        """Log what a model doesn't take of a request, once for each way of saying it."""
        if message not in self._warned:
            self._warned.add(message)
            import logging

            logging.getLogger(__name__).warning("Provider '%s': %s", self.name, message)


def room_for(reasoning: Reasoning) -> int:
    """Return how many tokens reasoning may take: its budget, or what its level stands for."""
    if reasoning.budget_tokens is not None and reasoning.budget_tokens >= 0:
        return reasoning.budget_tokens
    return LEVEL_TOKENS[reasoning.level or "medium"]


def level_of(budget: int) -> str:
    """Return the level that comes nearest to a budget of reasoning, where a model takes levels only."""
    return "low" if budget <= 2048 else "medium" if budget <= 8192 else "high"


def with_room(max_tokens: int, room: int) -> int:
    """Return the most tokens of a reply and its reasoning together: what was asked for, if reasoning leaves anything of it to the reply."""
    return max_tokens if max_tokens > room else max_tokens + room


def speakers(messages: Sequence[Message]) -> frozenset[str]:
    """Return the names of those who speak in a conversation, if there are several: formats without names then need them in the text."""
    names = {turn.name for turn in messages if turn.name and turn.role in ("user", "assistant")}
    return frozenset(names) if len(names) > 1 else frozenset()


def spoken(turn: Message, names: frozenset[str]) -> str:
    """Return what a turn says, with its speaker before it where several speak."""
    return f"{turn.name}: {turn.content}" if turn.name in names and turn.content else turn.content


def merged(turns: Iterable[tuple[str, list[dict[str, Any]]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return turns (a role and its parts) with neighbours of one role put together, and those without parts left out."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for role, parts in turns:
        if not parts:
            continue
        if found and found[-1][0] == role:
            found[-1][1].extend(parts)
        else:
            found.append((role, list(parts)))
    return found
