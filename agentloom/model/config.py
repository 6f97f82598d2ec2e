"""The blocks that set how a run behaves: `config`, `retry`, `sandbox`, and what `state_schema` says of a key."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentloom.model.base import (
    AnyPath,
    Choices,
    ItemsOrNothing,
    Model,
    ModelName,
    Money,
    OrNothing,
    Seconds,
)
from agentloom.model.marks import Mark


class Retry(Model):
    """How often and how patiently a step is tried again after a transient failure."""

    max_retries: int | None = Field(
        default=None,
        ge=0,
        description="Retries after the first attempt: 3 allows four attempts, 0 only one. Default: `config.max_retries`.",
        examples=[3],
    )
    backoff_base: Annotated[float, Mark("duration", "seconds")] = Field(
        default=2,
        description="How fast the waits grow, in seconds: the base, its square, its cube and so on, up to `backoff_max`. Default: 2.",
        examples=[2],
    )
    backoff_max: Annotated[float, Mark("duration", "seconds")] = Field(
        default=60,
        description="The longest wait between two attempts, in seconds. Default: 60.",
        examples=[60],
    )
    jitter: bool = Field(
        default=True,
        description="Varies each wait by up to 25 % either way, so that parallel steps don't retry in step. Default: true.",
    )
    retryable_status_codes: ItemsOrNothing[int] = Field(
        default=(429, 500, 502, 503, 504),
        description=(
            "The provider statuses worth another attempt; any other status fails the step at once. "
            "Default: 429, 500, 502, 503 and 504."
        ),
        examples=[[429, 500, 502, 503, 504]],
    )


class Sandbox(Model):
    """What tools may touch: commands, files and hosts. Off unless `enabled` is true; once on, what isn't listed is refused."""

    enabled: bool = Field(default=False, description="Whether the sandbox is on. Default: false, no checks at all.")
    allowed_commands: ItemsOrNothing[str] = Field(
        default=(),
        description="Programs that `shell_command` may start, by name. Default: none.",
        examples=[["ls", "git"]],
    )
    allowed_paths: ItemsOrNothing[AnyPath] = Field(
        default=(),
        description="Folders and files that tools may read and write. Default: none.",
        examples=[["./work"]],
    )
    readable_paths: ItemsOrNothing[AnyPath] = Field(
        default=(),
        description="Folders and files that tools may read, besides `allowed_paths`. Default: none.",
    )
    writable_paths: ItemsOrNothing[AnyPath] = Field(
        default=(),
        description="Folders and files that tools may write, besides `allowed_paths`. Default: none.",
    )
    allow_network: bool = Field(
        default=True, description="Whether tools and webhooks may use the network at all. Default: true."
    )
    allowed_domains: ItemsOrNothing[str] = Field(
        default=(),
        description=(
            "Hosts that tools and webhooks may reach, matched exactly; tools may reach a listed one inside the house, too. "
            "Default: none listed, which means any public host."
        ),
        examples=[["api.example.com"]],
    )
    allowed_schemes: ItemsOrNothing[str] = Field(
        default=("http", "https"),
        description="URL schemes that tools may use. Default: http and https.",
    )
    max_write_bytes: int | None = Field(
        default=None,
        ge=0,
        description="The most that one `file_write` may write, in bytes. Default: no limit.",
        examples=[1000000],
    )
    danger_opt_in: ItemsOrNothing[str] = Field(
        default=(),
        description=(
            "Shells, interpreters and other programs that start programs, which `allowed_commands` alone doesn't allow. "
            "Default: none."
        ),
        examples=[["python3"]],
    )
    allow_internal_webhook_targets: bool = Field(
        default=False,
        description="Whether webhooks may go to loopback, private and link-local addresses. Default: false.",
    )


class Config(Model):
    """What every step of the workflow inherits, and how the run as a whole behaves."""

    provider: Annotated[str, Mark("ref", "provider")] = Field(
        default="openai",
        description="The provider tried first for every model that it serves. Default: openai.",
        examples=["openai", "anthropic", "google", "ollama", "generic_openai", "mock"],
    )
    model: ModelName = Field(
        default="gpt-4o-mini",
        description="The model of steps that name none. Default: gpt-4o-mini.",
        examples=["gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-flash"],
    )
    max_retries: int = Field(
        default=3,
        ge=0,
        description="Retries after the first attempt, for steps whose `retry` sets none. Default: 3.",
        examples=[3],
    )
    budget_usd: Money | None = Field(
        default=None,
        description=(
            "The most that a run may spend, in US dollars; a run that goes over it is stopped. `--budget` overrides it. "
            "Default: no limit."
        ),
        examples=[0.5],
    )
    timeout: Seconds | None = Field(
        default=None,
        description="The time that the whole run may take, in seconds; 0 means no limit. Default: no limit.",
        examples=[300],
    )
    max_concurrent_steps: int = Field(
        default=10,
        ge=1,
        le=1024,
        description="How many steps of a layer run at the same time, 1 to 1024. Default: 10.",
        examples=[10],
    )
    on_step_failure: Annotated[
        Literal["skip_downstream", "continue"],
        Choices(
            **{
                "skip_downstream": "Skips every step that depends on the failed one, directly or through others.",
                "continue": "Runs the steps that depend on the failed one all the same.",
            }
        ),
    ] = Field(
        default="skip_downstream",
        description="What happens to the steps after a failed one; the run ends `failed` either way. Default: skip_downstream.",
    )
    stream: bool = Field(
        default=False,
        description="Whether `llm_call` steps stream their replies unless they say otherwise. Default: false.",
    )
    sandbox: Annotated[Sandbox, OrNothing(Sandbox)] = Field(
        default_factory=Sandbox,
        description="What tools may touch: commands, files and hosts. Default: off.",
    )
    strict_outputs: bool = Field(
        default=False,
        description="Whether two steps that can run in the same layer and write the same state key are an error. Default: false, a warning.",
    )
    responses_file: Annotated[str, Mark("file", "recording")] | None = Field(
        default=None,
        description="The recording that `provider: mock` answers from, relative to this file. Default: placeholder replies.",
        examples=["responses.json", "./recordings/triage.json"],
    )
    latency_model: Annotated[
        Literal["constant", "normal", "replay"],
        Choices(
            constant="Every mock reply takes `latency_ms`.",
            normal="Mock replies take `latency_ms` on average, with a spread of 10 %.",
            replay="Every mock reply takes as long as the recorded one did.",
        ),
    ] = Field(default="constant", description="How long replies of `provider: mock` take. Default: constant.")
    latency_ms: Annotated[float, Mark("duration", "milliseconds")] = Field(
        default=0,
        description="How long a reply of `provider: mock` takes, in milliseconds. Default: 0.",
        examples=[100],
    )
    capture_prompts: bool = Field(
        default=False,
        description="Whether results carry whole prompts, redacted keys replaced, and not only their hash. Default: false.",
    )


class StateKey(Model):
    """What `state_schema` says of the state keys that a name or glob matches."""

    redact: bool = Field(
        default=False,
        description="Whether checkpoints, results and webhooks show a hash in place of the value. Default: false.",
    )
