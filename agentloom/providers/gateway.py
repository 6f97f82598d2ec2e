"""The gateway: which providers serve a model, in which order they are tried, and what their failures add up to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeVar

from agentloom.errors import CircuitOpenError, ProviderError
from agentloom.providers.base import EmbeddingRequest, EmbeddingResponse, OnDelta, Provider, Request, Response
from agentloom.providers.breaker import RESET_SECONDS, THRESHOLD, Breaker, Meaning, State, meaning_of
from agentloom.providers.rates import (
    NO_LIMIT,
    REQUESTS_A_MINUTE,
    TOKENS_A_MINUTE,
    Leave,
    Limit,
    RateLimit,
    Turns,
    estimated_tokens,
    tokens_of_texts,
)
from agentloom.records import record

PRIORITY_CHOSEN = 0
PRIORITY_OTHER = 10
PRIORITY_FALLBACK = 100

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", Response, EmbeddingResponse)


@record()
class Registration:
    """One provider as the gateway knows it. ``models`` are names or patterns (`gpt-4*`); None asks the provider itself.

    A call needs a turn of all ``turns``; without limits there are none.
    """

    provider: Provider
    priority: int = PRIORITY_OTHER
    is_fallback: bool = False
    models: tuple[str, ...] | None = None
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=lambda: Breaker(""))
    limit: Limit = NO_LIMIT
    turns: tuple[Turns, ...] = ()

    def serves(self, model: str) -> bool:
        """Tell whether calls for ``model`` may go to this provider."""
        if model in self.model_aliases:
            return True
        if self.models is None:
            return self.provider.serves(model)
        return any(model == name or fnmatchcase(model, name) for name in self.models)

    def wire_model(self, model: str) -> str:
        """Return the provider's own name of a model."""
        return self.model_aliases.get(model, model)


@record()
class Absent:
    """A provider that could not be registered, which models it would serve, and how to get it (`set OPENAI_API_KEY …`).

    ``is_suggested`` is false for one that serves every model and that nobody asked for: errors don't advertise it.
    """

    name: str
    cure: str
    serves: Callable[[str], bool]
    is_suggested: bool = True


class ProviderGateway:
    """The providers of a run. Tries those that serve a model in order, and falls back from one to the next.

    The order: lower ``priority`` first, then the order of registering; fallback providers after all others. ``offline`` says that this is
    a replay: nothing may reach out, webhooks included; ``downloads`` are the attachments that were downloaded when it was recorded.
    """

    def __init__(self, *, offline: bool = False) -> None:
        self.offline = offline
        self.downloads: Mapping[str, Mapping[str, str]] = {}
        self._registered: list[Registration] = []
        self._absent: list[Absent] = []

    def register(
        self,
        provider: Provider,
        priority: int = PRIORITY_OTHER,
        is_fallback: bool = False,
        models: Iterable[str] | None = None,
        model_aliases: Mapping[str, str] | None = None,
        max_rpm: int | None = REQUESTS_A_MINUTE,
        max_tpm: int | None = TOKENS_A_MINUTE,
        circuit_fail_threshold: int = THRESHOLD,
        circuit_reset_timeout: float = RESET_SECONDS,
        max_concurrent: int | None = None,
    ) -> None:
        """Add a provider; one of the same name is replaced.

        ``models`` (names or patterns such as `gpt-4*`) says which models it serves, instead of the provider's own word.
        ``model_aliases`` translates requested names into this provider's; an alias counts as served. ``max_rpm`` and ``max_tpm`` are
        requests and tokens a minute, ``max_concurrent`` calls at once; None for no limit. So many failures in a row keep calls away for
        ``circuit_reset_timeout`` seconds.
        """
        name = provider.name
        limit = Limit(max_rpm, max_tpm, max_concurrent)
        entry = Registration(
            provider,
            priority,
            is_fallback,
            None if models is None else tuple(models),
            dict(model_aliases or {}),
            Breaker(name, circuit_fail_threshold, circuit_reset_timeout),
            limit,
            _turns(name, limit),
        )
        kept = [known for known in self._registered if known.provider.name != provider.name]
        # Sorting is stable: providers of one priority stay in the order in which they were registered.
        self._registered = sorted([*kept, entry], key=lambda known: (known.is_fallback, known.priority))

    def wrap(self, wrapped: Callable[[Provider], Provider]) -> None:
        """Put something around every provider that is registered by now, such as a ``RecordingProvider``."""
        self._registered = [replace(entry, provider=wrapped(entry.provider)) for entry in self._registered]

    def share(self, limits: Mapping[str, Limit], shared: Callable[[str, Limit], Turns]) -> None:
        """Have some limits, by the names of providers, kept by what several gateways share, instead of by this one alone."""
        for at, entry in enumerate(self._registered):
            name = entry.provider.name
            if (limit := limits.get(name, NO_LIMIT)) != NO_LIMIT:
                own = entry.limit.without(limit)
                turns = (*_turns(name, own), shared(name, limit))
                self._registered[at] = replace(entry, limit=own, turns=turns)

    def mark_absent(self, absent: Absent) -> None:
        """Remember a provider that could not be registered, so that errors can say how to get it."""
        self._absent.append(absent)

    def cure_for(self, provider: str) -> str | None:
        """Return what makes an absent provider available, if that is known."""
        return next((absent.cure for absent in self._absent if absent.name == provider), None)

    @property
    def providers(self) -> tuple[str, ...]:
        """The names of the registered providers, in the order in which they are tried."""
        return tuple(entry.provider.name for entry in self._registered)

    def candidates(self, model: str, prefer: str = "") -> list[Provider]:
        """Return the providers that serve ``model``, in the order in which they are tried."""
        return [entry.provider for entry in self._candidates(model, prefer)]

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call and return its reply.

        Every provider that serves the model is tried until one answers; once a streamed call has delivered text, its provider's
        failure is final. Raises ``ProviderError``: permanent when no provider serves the model or none can take the request;
        with a status only when every provider that was asked returned the same one; with the soonest Retry-After of all.
        """
        deltas = _Deltas(on_delta)

        async def call(entry: Registration) -> Response:
            provider, model = entry.provider, entry.wire_model(request.model)
            sent = request if model == request.model else replace(request, model=model, asked_model=request.model)
            lacks = provider.lacks(sent)
            if lacks is not None:
                raise _cannot(provider.name, lacks)
            return await provider.complete(sent, deltas.put if request.stream else None)

        candidates = self._candidates(request.model, request.prefer)
        tokens = partial(estimated_tokens, request.messages)
        return await self._first_answer(request.model, candidates, tokens, call, deltas)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, by the first provider that serves the model and answers; those without embeddings are passed over.

        Raises ``ProviderError``, permanent when no provider can.
        """

        async def call(entry: Registration) -> EmbeddingResponse:
            model = entry.wire_model(request.model)
            sent = request if model == request.model else replace(request, model=model, asked_model=request.model)
            return await entry.provider.embed(sent)

        found = self._candidates(request.model, request.prefer)
        candidates = [entry for entry in found if entry.provider.embeds]
        if found and not candidates:
            names = " and ".join(f"'{entry.provider.name}'" for entry in found)
            raise ProviderError(f"No provider of model '{request.model}' has embeddings: {names}", permanent=True)
        tokens = partial(tokens_of_texts, request.inputs)
        return await self._first_answer(request.model, candidates, tokens, call, _Deltas(None))

    async def _first_answer(
        self,
        model: str,
        candidates: Sequence[Registration],
        tokens: Callable[[], int],
        call: Callable[[Registration], Awaitable[Answer]],
        deltas: _Deltas,
    ) -> Answer:
        """Return the answer of the first candidate that gives one; ``tokens`` estimates the request, for limits. Raises ``ProviderError`` that sums up their failures."""
        if not candidates:
            raise ProviderError(self._nobody_serves(model), permanent=True)
        failures: list[ProviderError] = []
        for entry in candidates:
            try:
                return await self._attempt(entry, tokens, call, deltas)
            except ProviderError as error:
                if deltas.started:
                    raise
                failures.append(error)
                if entry is not candidates[-1]:
                    log.warning("Provider '%s' failed, trying the next one: %s", entry.provider.name, error)
        if len(failures) == 1:
            raise failures[0]
        raise _sum_of(model, failures) from failures[-1]

    def state_of(self, provider: str) -> State:
        """Return the state of a provider's circuit. Raises ``KeyError`` for one that isn't registered."""
        for entry in self._registered:
            if entry.provider.name == provider:
                return entry.breaker.state
        raise KeyError(provider)

    async def close(self) -> None:
        """Close every provider's connections; one that fails to close doesn't keep the others open."""
        for entry in self._registered:
            try:
                await entry.provider.close()
            except Exception:
                log.exception("Provider '%s' could not be closed", entry.provider.name)

    def _candidates(self, model: str, prefer: str) -> list[Registration]:
        found = [entry for entry in self._registered if entry.serves(model)]
        if prefer:
            found.sort(key=lambda entry: entry.provider.name != prefer)
        return found

    async def _attempt(
        self,
        entry: Registration,
        tokens: Callable[[], int],
        call: Callable[[Registration], Awaitable[Answer]],
        deltas: _Deltas,
    ) -> Answer:
        """Make one call to one provider, when its circuit lets it pass and its limits have room."""
        trial = entry.breaker.enter()
        meaning = Meaning.NOTHING  # also of a call that is called off
        leaves: list[Leave] = []
        said = 0
        try:
            for turns in entry.turns:
                leaves.append(await turns.enter(tokens()))
            answer = await self._call(entry, call, deltas)
            meaning = Meaning.WELL
            said = answer.usage.completion_tokens
        except ProviderError as error:
            meaning = meaning_of(error)
            raise
        finally:
            entry.breaker.leave(meaning, trial)
            for leave in leaves:
                leave(said)
        return answer

    async def _call(
        self, entry: Registration, call: Callable[[Registration], Awaitable[Answer]], deltas: _Deltas
    ) -> Answer:
        name = entry.provider.name
        try:
            return await call(entry)
        except ProviderError as error:
            if not error.provider:
                error.provider = name
            raise
        except Exception as error:
            if error is deltas.failure:
                raise  # the reader of the stream failed, not the provider
            log.exception("Provider '%s' raised an unexpected error", name)
            raise ProviderError(f"Provider '{name}': {type(error).__name__}: {error}", provider=name) from error

    def lacking(self, model: str) -> str | None:
        """Return what a call for ``model`` would fail of because no provider serves it, with the cure; None when one does."""
        return None if self._candidates(model, "") else self._nobody_serves(model)

    def _nobody_serves(self, model: str) -> str:
        text = f"No provider registered for model '{model}'"
        cures = [absent.cure for absent in self._absent if absent.is_suggested and absent.serves(model)]
        return f"{text}; {' or '.join(cures)}" if cures else text


class _Deltas:
    """Hands pieces of text on, and remembers whether any arrived and whether their reader failed."""

    def __init__(self, sink: OnDelta | None) -> None:
        self.sink = sink
        self.started = False
        self.failure: Exception | None = None

    async def put(self, text: str) -> None:
        self.started = True
        if self.sink is not None:
            try:
                await self.sink(text)
            except Exception as error:
                self.failure = error
                raise


def _turns(name: str, limit: Limit) -> tuple[Turns, ...]:
    """Return the turns that a provider's limits ask for: none without any."""
    return () if limit == NO_LIMIT else (RateLimit(name, limit),)


def _cannot(provider: str, lacks: str) -> ProviderError:
    return ProviderError(f"Provider '{provider}': {lacks}", provider=provider, permanent=True)


def _sum_of(model: str, failures: Sequence[ProviderError]) -> ProviderError:
    # A provider that couldn't take the request, or whose circuit is open, was never asked: it doesn't decide which status they all gave.
    asked = [error for error in failures if not error.permanent and not isinstance(error, CircuitOpenError)]
    statuses = {error.status_code for error in asked}
    waits = [error.retry_after for error in failures if error.retry_after is not None]
    return ProviderError(
        f"All providers failed for model '{model}': " + "; ".join(str(error) for error in failures),
        status_code=statuses.pop() if len(statuses) == 1 else None,
        retry_after=min(waits) if waits else None,
        permanent=all(error.permanent for error in failures),
    )
