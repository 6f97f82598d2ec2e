"""Embeddings: texts of the state become vectors, which go to the state; the step's output tells how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.paths import MISSING, Part, StatePath, get, parse_path
from agentloom.language.rendering import kind_of
from agentloom.providers.base import EmbeddingRequest, EmbeddingResponse
from agentloom.providers.rates import tokens_of_texts
from agentloom.steps.asking import derived

if TYPE_CHECKING:
    from agentloom.model.steps import EmbedStep

BATCH = 100
"""How many texts are embedded in one call: each is counted when it comes back, and waits for its turn by itself."""

BATCH_TOKENS = 20_000
"""About how many tokens one call has at most, unless one text has more: a fifth of what providers are asked in a minute without settings."""


def reads(step: EmbedStep) -> Iterator[tuple[Part, ...]]:
    """Yield where the texts lie."""
    yield path_of(step.inputs)


def path_of(written: str) -> tuple[Part, ...]:
    """Return the path that `inputs` spells, with or without braces. The file's check has looked at it before."""
    found = parse_path(written.removeprefix("{").removesuffix("}"))
    if not isinstance(found, StatePath):
        raise StepError(f"`inputs: {written}` is no path in the state; {found.message}")
    return found.parts


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt.

    Raises ``StepError``, permanent, for texts that aren't there or are none, and a transient one for vectors that don't fit together;
    ``ProviderError`` when no provider answers, permanent when none has embeddings.
    """
    step = cast("EmbedStep", op.step)
    texts = _texts(op, step)
    vectors: list[list[float]] = []
    first: EmbeddingResponse | None = None
    for at, batch in _batches(texts):
        request = EmbeddingRequest(
            step.model or services.model,
            batch,
            step.dimensions,
            step_id=op.path,
            prefer=services.provider,
            idempotency_key=attempt.key if at == 0 else derived(attempt.key, at, *batch),
        )
        response = await services.gateway.embed(request)
        attempt.spend(response.cost_usd, response.usage)
        vectors.extend(list(map(float, vector)) for vector in response.vectors)
        first = first or response
        _check(response, len(batch), first, {len(vector) for vector in vectors})
    length = len(vectors[0]) if vectors else 0
    if step.dimensions is not None and vectors and length != step.dimensions:
        attempt.warn(f"`dimensions: {step.dimensions}` was asked for, and the vectors have {length}")
    return StepResult(
        step.id,
        "success",
        output=f"{len(vectors)} vectors × {length}",
        value=vectors,
        model=first.model if first is not None else None,
        provider=first.provider if first is not None else None,
    )


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the texts call by call, each with the number of its first text."""
    at = tokens = 0
    for number, text in enumerate(texts):
        more = tokens_of_texts([text])
        if number > at and (number - at == BATCH or tokens + more > BATCH_TOKENS):
            yield at, texts[at:number]
            at, tokens = number, 0
        tokens += more
    if at < len(texts):
        yield at, texts[at:]


def _texts(op: Op, step: EmbedStep) -> Sequence[str]:
    found: JSON = get(op.inputs, path_of(step.inputs))
    if found is MISSING:
        cure = "; leave out `state.`" if path_of(step.inputs)[0] == "state" else ""
        raise StepError(f"`inputs: {step.inputs}` names nothing in the state{cure}")
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list):
        raise StepError(f"`inputs: {step.inputs}` must be a text or a list of texts, not {kind_of(found)}")
    for at, item in enumerate(found):
        if not isinstance(item, str):
            raise StepError(f"`inputs: {step.inputs}` must be a list of texts; item {at} is {kind_of(item)}")
    return found


def _check(response: EmbeddingResponse, wanted: int, first: EmbeddingResponse, lengths: set[int]) -> None:
    """Raise ``StepError``, transient, for vectors that are too few, or that can't be compared with each other."""
    name = f"Provider '{response.provider}'"
    if len(response.vectors) != wanted:
        raise StepError(f"{name}: {len(response.vectors)} vectors for {wanted} texts", transient=True)
    if (response.provider, response.model) != (first.provider, first.model):
        one, other = f"'{first.provider}/{first.model}'", f"'{response.provider}/{response.model}'"
        raise StepError(f"vectors of {one} and of {other} can't be compared with each other", transient=True)
    if len(lengths) > 1:
        raise StepError(f"{name}: the vectors have different lengths", transient=True)


EXECUTOR = Executor(type="embed", reads=reads, run=run, summarizes=True)
