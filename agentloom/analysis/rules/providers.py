"""Rules about providers, models and attachments."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import config_span, node_at, renamed, span_at
from agentloom.analysis.values import undefined
from agentloom.diagnostics import Finding

_DEFAULT_MODEL = "gpt-4o-mini"
_TAKES = {"pdf": ("anthropic", "google"), "audio": ("openai", "google")}


def unknown_provider(document: WorkflowDocument) -> Iterator[Finding]:
    """`config.provider` names a provider that there is none of.

    Providers are those that agentloom has, and those that the settings set up under `providers`.

    Correct the name, or set it up in the settings.
    """
    name = mapping(document.head.data.get("config")).get("provider")
    span = config_span(document, "provider")
    if not isinstance(name, str) or not name or span is None:
        return
    from agentloom.providers.table import PROVIDER_NAMES

    known = [*PROVIDER_NAMES, *document.context.settings.providers]
    if name in known:
        return
    from agentloom.similar import closest

    near = closest(name, known)
    message = undefined("provider", name, near, "there are " + ", ".join(f"`{known_name}`" for known_name in known))
    node = node_at(document.head, "config", "provider")
    yield Finding("AL601", span, message, fixes=renamed(node, near, document.base))


def model_of_another_provider(document: WorkflowDocument) -> Iterator[Finding]:
    """`config.provider` can't serve `config.model`.

    Another provider answers then, if its key is there; else every call fails. Steps that name a model of their own aren't meant: a
    workflow may use several providers.

    Choose a model of the provider, or the provider of the model.
    """
    config = mapping(document.head.data.get("config"))
    provider = config.get("provider")
    model = config.get("model", _DEFAULT_MODEL)
    if not isinstance(provider, str) or not isinstance(model, str) or not model:
        return
    if provider == "mock" or provider in document.context.settings.providers:
        return
    from agentloom.providers.table import BY_NAME, home_of

    spec = BY_NAME.get(provider)
    if spec is None or spec.serves(model) or (provider == "openai" and home_of(model) is None):
        return
    if "model" not in config and not any(
        s.type in ("llm_call", "agent") and not s.facts.data.get("model") for s in document.steps
    ):
        return
    home = home_of(model)
    span = config_span(document, "model" if "model" in config else "provider")
    if span is None:
        return
    told = f"the default model, `{model}`" if "model" not in config else f"`{model}`"
    whose = f"it is one of `{home}`" if home else "choose one of its models"
    yield Finding("AL602", span, f"`{provider}` doesn't serve {told}; {whose}")


def attachment_unsupported(document: WorkflowDocument) -> Iterator[Finding]:
    """A step sends an attachment that its model's provider doesn't take.

    Every provider takes images; PDFs go to Anthropic and Google, sounds to OpenAI and Google.

    Choose a model that takes it, or send the content in another form.
    """
    config = mapping(document.head.data.get("config"))
    for step in document.steps:
        if "attachments" not in step.facts.fields:
            continue
        listed = step.facts.data.get("attachments")
        model = step.facts.data.get("model") or config.get("model", _DEFAULT_MODEL)
        if not isinstance(listed, list) or not listed or not isinstance(model, str) or config.get("provider") == "mock":
            continue
        from agentloom.providers.table import home_of  # only for files with attachments

        home = home_of(model)
        if home is None:
            continue
        for number, attachment in enumerate(listed):
            kind = mapping(attachment).get("type")
            takes = _TAKES.get(kind) if isinstance(kind, str) else None
            if takes is not None and home not in takes:
                yield Finding(
                    "AL603",
                    step.place(span_at(step.facts, "attachments", number, "type")),
                    f"`{home}` takes no `{kind}` attachments; choose a model of {' or '.join(f'`{name}`' for name in takes)}",
                )
