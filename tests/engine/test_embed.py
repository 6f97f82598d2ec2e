"""Embeddings: texts of the state become vectors in the state, and everything that can keep them from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import load_run
from agentloom.core.loader import load_data
from agentloom.errors import ProviderError
from agentloom.providers.base import BaseProvider, EmbeddingRequest, EmbeddingResponse, Response, Usage
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider, placeholder_vector
from agentloom.providers.recording import read_recording
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow


def embed(id: str = "e", *after: str, **more: Any) -> dict[str, Any]:
    """Return an `embed` step."""
    return {"id": id, "type": "embed", "inputs": "docs", "depends_on": list(after), "output": "vectors", **more}


class Vectors(BaseProvider):
    """A provider with embeddings: each text becomes its length and its number in the batch; the script says when a batch fails."""

    embeds = True

    def __init__(self, name: str = "mock", script: Mapping[int, Any] | None = None) -> None:
        self.name = name
        self.requests: list[EmbeddingRequest] = []
        self.script = script or {}

    async def complete(self, request: Any, on_delta: Any = None) -> Response:
        return Response(request.messages[-1].content, request.model, self.name)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        self.requests.append(request)
        answer = self.script.get(len(self.requests) - 1)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, EmbeddingResponse):
            return answer
        vectors = [[len(text), float(at)] for at, text in enumerate(request.inputs)]
        count = len(request.inputs)
        return EmbeddingResponse(vectors, request.model, self.name, Usage(count, 0, count), 0.001 * count)


async def play(data: Mapping[str, Any], *providers: BaseProvider, **options: Any) -> Any:
    gateway = ProviderGateway()
    for provider in providers:
        gateway.register(provider, max_rpm=None, max_tpm=None)
    return await WorkflowEngine(load_data(data), gateway, **options).run()


def run(data: Mapping[str, Any], *providers: BaseProvider, **options: Any) -> Any:
    async def main() -> Any:
        return await play(data, *providers, **options)

    return run_virtual(main)


@pytest.mark.parametrize(
    ("docs", "inputs", "vectors", "text"),
    [
        (["a", "bcd"], "docs", [[1.0, 0.0], [3.0, 1.0]], "2 vectors × 2"),
        ("alone", "docs", [[5.0, 0.0]], "1 vectors × 2"),
        (["a"], "{docs}", [[1.0, 0.0]], "1 vectors × 2"),
        ({"in": {"it": ["ab"]}}, "docs.in.it", [[2.0, 0.0]], "1 vectors × 2"),
        ([], "docs", [], "0 vectors × 0"),
        (["{state.docs}", ""], "docs", [[12.0, 0.0], [0.0, 1.0]], "2 vectors × 2"),
    ],
)
def test_texts_become_vectors(docs: Any, inputs: str, vectors: Any, text: str) -> None:
    """EM-1: a text or a list of texts, as they stand; the state gets the vectors, the output tells of them."""
    provider = Vectors()
    result = run(flow(embed(inputs=inputs), state={"docs": docs}), provider)
    assert result.status == "success"
    assert result.final_state["vectors"] == vectors
    assert all(type(number) is float for vector in result.final_state["vectors"] for number in vector)
    step = result.step_results["e"]
    assert (step.output, step.value) == (text, vectors)
    assert result.final_state["steps"]["e"] == {"output": text, "status": "success"}
    assert (step.model, step.provider) == (("m", "mock") if vectors else (None, None))
    assert len(provider.requests) == (1 if vectors else 0)


def test_what_is_asked_for() -> None:
    """The step's model or the workflow's, its dimensions, its path and its key."""
    provider = Vectors()
    steps = [embed("a", dimensions=2, model="text-embedding-3-small"), embed("b", "a", inputs="steps.a.output")]
    result = run(flow(*steps, state={"docs": ["x"]}), provider)
    first, second = provider.requests
    assert (first.model, first.dimensions, first.step_id, list(first.inputs)) == (
        "text-embedding-3-small", 2, "a", ["x"],
    )  # fmt: skip
    assert (second.model, second.dimensions, list(second.inputs)) == ("m", None, ["1 vectors × 2"])
    assert first.idempotency_key
    assert first.idempotency_key != second.idempotency_key
    assert result.step_results["a"].warnings == ()


def test_many_texts_are_counted_batch_by_batch() -> None:
    """A hundred a call, each with a key of its own; what was paid before a failure counts, and the next attempt begins anew."""
    failure = ProviderError("no", status_code=503)
    provider = Vectors(script={2: failure})
    retry = {"max_retries": 1, "backoff_base": 0}
    result = run(flow(embed(retry=retry), state={"docs": [f"{at}" for at in range(250)]}), provider)
    step = result.step_results["e"]
    assert [len(request.inputs) for request in provider.requests] == [100, 100, 50, 100, 100, 50]
    assert len({request.idempotency_key for request in provider.requests}) == 6
    assert (step.output, step.attempts) == ("250 vectors × 2", 2)
    assert (step.token_usage.prompt_tokens, step.cost_usd) == (450, pytest.approx(0.45))


def test_long_texts_fit_into_what_a_minute_allows() -> None:
    """GW-4: a hundred of them in one call would be more than a provider is asked in a minute, which no wait cures."""
    provider = Vectors()

    async def main() -> Any:
        gateway = ProviderGateway()
        gateway.register(provider)  # with the limits that hold without settings
        data = flow(embed(), state={"docs": ["x" * 6_000] * 100})
        return await WorkflowEngine(load_data(data), gateway).run()

    result = run_virtual(main)
    assert result.step_results["e"].output == "100 vectors × 2"
    assert [len(request.inputs) for request in provider.requests] == [13] * 7 + [9]
    assert result.total_duration_ms == pytest.approx(30_000)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, "`inputs: docs` names nothing in the state"),
        ({"docs": None}, "`inputs: docs` must be a text or a list of texts, not null"),
        ({"docs": 5}, "`inputs: docs` must be a text or a list of texts, not a number"),
        ({"docs": {"a": "b"}}, "`inputs: docs` must be a text or a list of texts, not a mapping"),
        ({"docs": ["a", 7]}, "`inputs: docs` must be a list of texts; item 1 is a number"),
        ({"docs": ["a", ["b"]]}, "`inputs: docs` must be a list of texts; item 1 is a list"),
    ],
)
def test_inputs_that_are_no_texts(state: dict[str, Any], says: str) -> None:
    """EM-1: permanent, so nothing is asked and nothing is tried again."""
    provider = Vectors()
    step = run(flow(embed(), state=state), provider).step_results["e"]
    assert (step.status, step.error, step.error_classification) == ("failed", says, "permanent")
    assert (provider.requests, step.attempts) == ([], 1)


def test_a_path_that_begins_with_state_is_told_the_cure() -> None:
    """Paths of `inputs` begin below the state, as those of `output` do."""
    step = run(flow(embed(inputs="{state.docs}"), state={"docs": ["a"]}), Vectors()).step_results["e"]
    assert step.error == "`inputs: {state.docs}` names nothing in the state; leave out `state.`"


def test_a_provider_without_embeddings_is_passed_over() -> None:
    """EM-2: its breaker stays closed; without any other provider the failure is permanent."""
    plain = Script()
    plain.name = "plain"
    result = run(flow(embed(), state={"docs": ["x"]}), plain, Vectors())
    assert (result.status, result.step_results["e"].provider) == ("success", "mock")

    async def alone() -> None:
        gateway = ProviderGateway()
        gateway.register(plain, circuit_fail_threshold=1)
        result = await WorkflowEngine(load_data(flow(embed(), state={"docs": ["x"]})), gateway).run()
        step = result.step_results["e"]
        assert (step.error, step.error_classification, step.attempts) == (
            "No provider of model 'm' has embeddings: 'plain'", "permanent", 1,
        )  # fmt: skip
        assert gateway.state_of("plain").value == "closed"

    run_virtual(alone)


@pytest.mark.parametrize(("status", "classification"), [(400, "permanent"), (429, "transient"), (None, "transient")])
def test_failures_of_providers(status: int | None, classification: str) -> None:
    """RT-2: a status that isn't listed is permanent, a listed one and none at all are transient."""
    error = ProviderError("no", status_code=status)
    step = run(flow(embed(retry={"max_retries": 0}), state={"docs": ["x"]}), Vectors(script={0: error})).step_results[
        "e"
    ]
    assert (step.status, step.error_classification) == ("failed", classification)


def response(*vectors: list[float], provider: str = "mock", model: str = "m") -> EmbeddingResponse:
    return EmbeddingResponse(vectors, model, provider)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (response([1.0]), "Provider 'mock': 1 vectors for 50 texts"),
        (response(*[[1.0, 2.0, 3.0]] * 50), "Provider 'mock': the vectors have different lengths"),
        (
            response(*[[1.0, 2.0]] * 50, model="n"),
            "vectors of 'mock/m' and of 'mock/n' can't be compared with each other",
        ),
        (
            response(*[[1.0, 2.0]] * 50, provider="other"),
            "vectors of 'mock/m' and of 'other/m' can't be compared with each other",
        ),
    ],
)
def test_vectors_that_do_not_fit_together(answer: EmbeddingResponse, says: str) -> None:
    """A fallback between two batches would mix what can't be compared; the next attempt begins anew."""
    provider = Vectors(script={1: answer})
    data = flow(embed(retry={"max_retries": 0}), state={"docs": ["x"] * 150})
    step = run(data, provider).step_results["e"]
    assert (step.error, step.error_classification) == (says, "transient")


def test_other_dimensions_than_asked_for_are_told() -> None:
    """A server may pass over what it doesn't know."""
    result = run(flow(embed(dimensions=256), state={"docs": ["x"]}), Vectors())
    assert result.step_results["e"].warnings == ("`dimensions: 256` was asked for, and the vectors have 2",)


@pytest.mark.parametrize(("dimensions", "length"), [(None, 8), (3, 3), (40, 40)])
def test_the_mock_makes_vectors_of_nothing_but_the_text(dimensions: int | None, length: int) -> None:
    """EM-2: bytes of the text's SHA-256, from -1 to 1, round and round; for free."""
    data = flow(embed(dimensions=dimensions), state={"docs": ["a", "b", "a"]})
    result = run(data, MockProvider())
    vectors = result.final_state["vectors"]
    assert vectors[0] == vectors[2] == placeholder_vector("a", length)
    assert vectors[0] != vectors[1]
    assert vectors[0][32:] == vectors[0][: max(0, length - 32)]
    assert all(-1 <= number < 1 for number in vectors[0])
    assert result.total_cost_usd == 0


def test_recorded_vectors_are_repeated() -> None:
    """RP-2, RP-3: by the step's id, with their cost; a step of several batches has several turns."""
    turns = [
        {
            "embeddings": [[0.5, 1]] * 100,
            "model": "text-embedding-3-small",
            "cost_usd": 0.25,
            "usage": {"prompt_tokens": 7},
        },
        {"embeddings": [[0.25, 2.0]], "model": "text-embedding-3-small", "cost_usd": 0.5},
    ]
    recording = read_recording({"_version": 2, "e": turns})
    result = run(flow(embed(), state={"docs": ["x"] * 101}), MockProvider(recording))
    assert result.final_state["vectors"] == [[0.5, 1.0]] * 100 + [[0.25, 2.0]]
    step = result.step_results["e"]
    assert (step.cost_usd, step.token_usage.prompt_tokens, step.model) == (0.75, 7, "text-embedding-3-small")


def test_a_budget_stops_between_steps() -> None:
    """BU-1: embeddings cost, too."""
    data = flow(embed("a"), embed("b", "a", output="more"), state={"docs": ["x"] * 10}, config={"budget_usd": 0.005})
    result = run(data, Vectors())
    assert (result.status, set(result.step_results)) == ("budget_exceeded", {"a"})
    assert result.final_state["vectors"] != []


def test_vectors_outlive_the_process(tmp_path: Path) -> None:
    """RS-1: a resumed run doesn't pay for them again, and the next step reads them."""
    store = FileCheckpointer(tmp_path)
    data = flow(embed(), ask("b", "e", prompt="{state.vectors}"), state={"docs": ["x"]})

    async def main() -> None:
        broken = Vectors()

        async def no(request: Any, on_delta: Any = None) -> Response:
            raise ProviderError("no", status_code=400)

        broken.complete = no  # type: ignore[method-assign]
        first = await play(data, broken, checkpointer=store, run_id="r")
        assert first.status == "failed"
        gateway = ProviderGateway()
        again = Vectors()
        gateway.register(again)
        engine = await WorkflowEngine.from_checkpoint(load_run(store, "r"), store, provider_gateway=gateway)
        result = await engine.run()
        assert (result.status, again.requests) == ("success", [])
        assert result.step_results["b"].output == "[[1.0,0.0]]"
        assert result.step_results["e"].output == "1 vectors × 2"

    run_virtual(main)


def test_secret_vectors_are_in_no_file(tmp_path: Path) -> None:
    """RD-3: what goes to a secret key is redacted number by number."""
    store = FileCheckpointer(tmp_path)
    data = flow(embed(), state={"docs": ["x" * 4711]}, state_schema={"vectors": {"redact": True}})
    open_vectors = run({**data, "state_schema": {}}, Vectors())
    assert "[4711.0, 0.0]" in str(open_vectors.to_dict())
    result = run(data, Vectors(), checkpointer=store, run_id="r")
    assert result.status == "success"
    assert "4711.0" not in store.path("r").read_text(encoding="utf-8")
    assert "4711.0" not in str(result.to_dict())
