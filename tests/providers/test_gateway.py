"""The gateway: order, fallback, and what the failures of several providers add up to (PR-1, GW-1, GW-2, GW-5, GW-7)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    Attachment,
    BaseProvider,
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    OnDelta,
    Request,
    Response,
)
from agentloom.providers.gateway import Absent, ProviderGateway

pytestmark = pytest.mark.anyio


class Scripted(BaseProvider):
    """A provider of a user's own: delivers pieces of text, then answers or fails as told."""

    def __init__(
        self, name: str, *, failure: Exception | None = None, pieces: Sequence[str] = (), models: str = ""
    ) -> None:
        self.name = name
        self.failure = failure
        self.pieces = pieces
        self.models = models
        self.asked: list[str] = []
        self.closed = 0

    def serves(self, model: str) -> bool:
        return model.startswith(self.models)

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        self.asked.append(request.model)
        for piece in self.pieces:
            if on_delta is not None:
                await on_delta(piece)
        if self.failure is not None:
            raise self.failure
        return Response(content="".join(self.pieces) or f"from {self.name}", model=request.model, provider=self.name)

    async def close(self) -> None:
        self.closed += 1
        if isinstance(self.failure, OSError):
            raise self.failure


def ask(model: str = "gpt-4o-mini", *, stream: bool = False, prefer: str = "") -> Request:
    return Request(model, [Message("user", "hello")], stream=stream, step_id="s", prefer=prefer)


def failing(name: str, status: int | None = None, **more: object) -> Scripted:
    return Scripted(name, failure=ProviderError(f"{name} says no", provider=name, status_code=status, **more))  # type: ignore[arg-type]


def gateway_of(*providers: Scripted) -> ProviderGateway:
    gateway = ProviderGateway()
    for provider in providers:
        gateway.register(provider)
    return gateway


async def failure_of(gateway: ProviderGateway, request: Request | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await gateway.complete(request or ask())
    return caught.value


def names(gateway: ProviderGateway, model: str, prefer: str = "") -> list[str]:
    return [provider.name for provider in gateway.candidates(model, prefer)]


async def test_order_is_priority_then_registering_then_fallbacks() -> None:
    """The chosen provider comes first, fallbacks last whatever their priority."""
    gateway = ProviderGateway()
    gateway.register(Scripted("last"), priority=0, is_fallback=True)
    gateway.register(Scripted("b"))
    gateway.register(Scripted("a"))
    gateway.register(Scripted("chosen"), priority=0)
    assert names(gateway, "m") == ["chosen", "b", "a", "last"]
    assert gateway.providers == ("chosen", "b", "a", "last")


async def test_only_providers_that_serve_the_model_are_tried() -> None:
    """`models`, patterns and aliases decide; without them the provider itself does."""
    gateway = ProviderGateway()
    gateway.register(Scripted("own", models="gpt-"))
    gateway.register(Scripted("listed"), models=["llama3", "qwen*"])
    gateway.register(Scripted("aliased", models="claude"), model_aliases={"gpt-4o": "claude-sonnet-4-5"})
    assert names(gateway, "gpt-4o") == ["own", "aliased"]
    assert names(gateway, "qwen-7b") == ["listed"]
    assert names(gateway, "llama3") == ["listed"]
    assert names(gateway, "llama33") == []
    assert names(gateway, "claude-3") == ["aliased"]


async def test_a_request_may_prefer_a_provider() -> None:
    """`prefer` comes first, also before the chosen one; a name nobody registered changes nothing."""
    gateway = gateway_of(Scripted("a"), Scripted("b"), Scripted("c", models="x"))
    assert names(gateway, "m", "b") == ["b", "a"]
    assert names(gateway, "m", "zz") == ["a", "b"]
    assert (await gateway.complete(ask(prefer="b"))).provider == "b"


async def test_registering_a_name_again_replaces_it() -> None:
    """There is one provider of a name."""
    gateway = gateway_of(failing("a", 500), Scripted("a"))
    assert gateway.providers == ("a",)
    assert (await gateway.complete(ask())).content == "from a"


async def test_a_provider_that_fails_falls_back_to_the_next(caplog: pytest.LogCaptureFixture) -> None:
    """A 500 on the first provider is answered by the second, and the log says so."""
    first, second = failing("first", 500), Scripted("second")
    with caplog.at_level(logging.WARNING):
        response = await gateway_of(first, second).complete(ask())
    assert response.provider == "second"
    assert first.asked == ["gpt-4o-mini"]
    assert "Provider 'first' failed, trying the next one: first says no" in caplog.messages


async def test_aliases_translate_the_name_for_their_provider_only() -> None:
    """Every other provider gets the name as written."""
    first, second = failing("first", 503), Scripted("second")
    gateway = ProviderGateway()
    gateway.register(first, model_aliases={"fast": "gpt-4o-mini"})
    gateway.register(second)
    assert (await gateway.complete(ask("fast"))).model == "fast"
    assert (first.asked, second.asked) == (["gpt-4o-mini"], ["fast"])


async def test_one_failure_is_raised_as_it_is() -> None:
    """A single provider's error keeps its own words, status and Retry-After."""
    error = await failure_of(gateway_of(failing("only", 429, retry_after=7.0)))
    assert (str(error), error.status_code, error.retry_after, error.provider) == ("only says no", 429, 7.0, "only")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [((503, 503), 503), ((503, 500), None), ((429, None), None), ((None, None), None), ((400, 400, 400), 400)],
)
async def test_the_sum_has_a_status_only_if_all_agree(statuses: tuple[int | None, ...], expected: int | None) -> None:
    """GW-1."""
    error = await failure_of(gateway_of(*(failing(f"p{at}", status) for at, status in enumerate(statuses))))
    assert error.status_code == expected
    assert not error.permanent
    assert str(error).startswith("All providers failed for model 'gpt-4o-mini': p0 says no; p1 says no")


async def test_a_provider_that_cannot_take_the_request_does_not_decide() -> None:
    """A request that one provider can't take and the other answers with 503 may be tried again."""
    refusing = failing("refusing", permanent=True)
    error = await failure_of(gateway_of(refusing, failing("busy", 503)))
    assert (error.status_code, error.permanent) == (503, False)
    error = await failure_of(gateway_of(refusing, failing("too", permanent=True)))
    assert (error.status_code, error.permanent) == (None, True)


async def test_the_soonest_retry_after_counts() -> None:
    """GW-5."""
    error = await failure_of(
        gateway_of(failing("a", 429, retry_after=30.0), failing("b", 429, retry_after=2.5), failing("c", 429))
    )
    assert (error.status_code, error.retry_after) == (429, 2.5)


async def test_a_model_that_nobody_serves_is_permanent_and_says_what_to_do() -> None:
    """GW-7; the missing key of the provider that would serve the model is named, others are not."""
    gateway = gateway_of(Scripted("other", models="claude"))
    gateway.mark_absent(Absent("openai", "set OPENAI_API_KEY to use `openai`", lambda model: model.startswith("gpt-")))
    gateway.mark_absent(Absent("anywhere", "start a server", lambda model: True, is_suggested=False))
    error = await failure_of(gateway)
    assert str(error) == "No provider registered for model 'gpt-4o-mini'; set OPENAI_API_KEY to use `openai`"
    assert (error.permanent, error.status_code) == (True, None)
    assert str(await failure_of(gateway, ask("llama3"))) == "No provider registered for model 'llama3'"


async def test_a_stream_falls_back_before_its_first_chunk() -> None:
    """GW-2: nothing was shown yet, so the next provider may answer."""
    seen: list[str] = []

    async def show(text: str) -> None:
        seen.append(text)

    second = Scripted("second", pieces=("one ", "two"))
    response = await gateway_of(failing("first", 503), second).complete(ask(stream=True), show)
    assert (response.content, seen) == ("one two", ["one ", "two"])


@pytest.mark.parametrize("shown", [True, False])
async def test_a_stream_that_breaks_off_does_not_fall_back(shown: bool) -> None:
    """GW-2: after the first chunk the attempt fails, whether or not somebody watches."""

    async def show(text: str) -> None:
        seen.append(text)

    seen: list[str] = []
    broken = Scripted("first", pieces=("half",), failure=ProviderError("broke off"))
    second = Scripted("second")
    gateway = gateway_of(broken, second)
    with pytest.raises(ProviderError, match="broke off") as caught:
        await gateway.complete(ask(stream=True), show if shown else None)
    assert caught.value.provider == "first"
    assert second.asked == []
    assert seen == (["half"] if shown else [])


async def test_a_request_without_streaming_delivers_no_pieces() -> None:
    """`on_delta` is only for streamed requests."""
    seen: list[str] = []

    async def show(text: str) -> None:
        seen.append(text)

    assert (await gateway_of(Scripted("a", pieces=("x",))).complete(ask(), show)).content == "x"
    assert seen == []


async def test_the_failure_of_the_reader_is_not_the_providers() -> None:
    """An error raised by `on_delta` comes out unchanged and tries nobody else."""

    async def show(text: str) -> None:
        raise BrokenPipeError("the terminal is gone")

    second = Scripted("second")
    with pytest.raises(BrokenPipeError, match="the terminal is gone"):
        await gateway_of(Scripted("first", pieces=("x",)), second).complete(ask(stream=True), show)
    assert second.asked == []


async def test_an_unexpected_error_of_a_provider_counts_as_its_failure(caplog: pytest.LogCaptureFixture) -> None:
    """A bug in a user's own provider is logged and falls back."""
    broken = Scripted("own", failure=KeyError("choices"))
    assert (await gateway_of(broken, Scripted("next")).complete(ask())).provider == "next"
    assert "Provider 'own' raised an unexpected error" in caplog.messages
    error = await failure_of(gateway_of(broken))
    assert (str(error), error.status_code) == ("Provider 'own': KeyError: 'choices'", None)


async def test_closing_closes_all(caplog: pytest.LogCaptureFixture) -> None:
    """One provider that can't be closed doesn't keep the others open."""
    providers = [Scripted("a"), Scripted("b", failure=OSError("stuck")), Scripted("c")]
    await gateway_of(*providers).close()
    assert [provider.closed for provider in providers] == [1, 1, 1]
    assert "Provider 'b' could not be closed" in caplog.messages


# ── what not everybody can do ──


class Embedder(Scripted):
    """A provider with embeddings: the length of each text."""

    embeds = True

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        self.asked.append(request.model)
        if self.failure is not None:
            raise self.failure
        return EmbeddingResponse([[float(len(text))] for text in request.inputs], request.model, self.name)


async def test_providers_without_embeddings_are_passed_over() -> None:
    """EM-2: nobody is asked for what he hasn't got, and his circuit stays as it was."""
    plain, first, second = Scripted("plain"), Embedder("first", failure=ProviderError("no")), Embedder("second")
    gateway = gateway_of(plain, first, second)
    answer = await gateway.embed(EmbeddingRequest("m", ["a", "bcd"]))
    assert (answer.provider, answer.vectors) == ("second", [[1.0], [3.0]])
    assert (plain.asked, first.asked) == ([], ["m"])
    with pytest.raises(ProviderError, match="No provider of model 'm' has embeddings: 'plain'") as caught:
        await gateway_of(plain).embed(EmbeddingRequest("m", ["a"]))
    assert caught.value.permanent


async def test_a_request_that_an_api_cannot_take_goes_to_the_next() -> None:
    """Of several, one that can take it answers; alone, the refusal is permanent. Neither says anything about the provider."""

    class NoPictures(Scripted):
        def lacks(self, request: Request) -> str | None:
            return "takes no images" if request.attachments else None

    picture = Message("user", "look", attachments=(Attachment("image", "image/png", b"x"),))
    request = Request("m", [picture])
    one, two = NoPictures("one"), Scripted("two")
    assert (await gateway_of(one, two).complete(request)).provider == "two"
    gateway = gateway_of(one)
    for _ in range(6):
        with pytest.raises(ProviderError, match="Provider 'one': takes no images") as caught:
            await gateway.complete(request)
        assert caught.value.permanent
    assert (await gateway.complete(ask())).provider == "one"
    assert one.asked == ["gpt-4o-mini"]
