"""The list of rules. A rule is one line here, one generator function with a docstring, and one folder of fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal, NamedTuple

from agentloom.analysis.rules import (
    collisions,
    composition,
    described,
    expressions,
    gates,
    graph,
    names,
    reliability,
    routers,
    scalars,
    shape,
    templates,
)
from agentloom.analysis.settings import Problem, Settings, problem_in
from agentloom.diagnostics import Finding, Severity
from agentloom.similar import closest

Scope = Literal["reader", "shape", "mapping", "step", "document", "driver"]

DOCS_URL = "https://github.com/agentloom/agentloom/blob/main/docs/rules/"


class Late:
    """A rule's function that is imported when it is first asked for: ``module.function`` among the rules."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def function(self) -> Callable[..., Iterator[Finding]]:
        """Return the function itself."""
        module, _, name = self.path.partition(".")
        found: Callable[..., Iterator[Finding]] = getattr(import_module(f"agentloom.analysis.rules.{module}"), name)
        return found

    def __call__(self, subject: Any) -> Iterator[Finding]:
        return self.function()(subject)


class Rule(NamedTuple):
    """One rule. ``scope`` tells who yields its findings: the YAML reader, the shape check, a function over the facts of any
    mapping (a step's or the head's), of a step's only, or over the document, or the driver itself. ``gate`` tells whether ``check`` is worth
    loading and running.
    """

    code: str
    name: str
    severity: Severity
    scope: Scope
    text: str
    check: Callable[..., Iterator[Finding]] | None = None
    fixable: bool = False
    gate: gates.Gate | None = None

    @property
    def doc(self) -> str:
        """Summary, why and cure, as paragraphs."""
        return (self.check.function().__doc__ or "") if isinstance(self.check, Late) else self.text

    @property
    def url(self) -> str:
        """The address of the rule's page."""
        return f"{DOCS_URL}{self.code}.md"

    @property
    def summary(self) -> str:
        """The first paragraph of the rule's text, on one line."""
        return " ".join(self.doc.strip().split("\n\n")[0].split())


E, W, I, H = Severity.ERROR, Severity.WARNING, Severity.INFORMATION, Severity.HINT  # noqa: E741


def _told(code: str, name: str, severity: Severity, scope: Scope, fixable: bool = False) -> Rule:
    return Rule(code, name, severity, scope, described.TEXTS[code], None, fixable)


def _rule(
    code: str,
    name: str,
    severity: Severity,
    scope: Scope,
    check: Callable[..., Any] | str,
    fixable: bool = False,
    gate: gates.Gate | None = None,
) -> Rule:
    if isinstance(check, str):
        return Rule(code, name, severity, scope, "", Late(check), fixable, gate)
    return Rule(code, name, severity, scope, check.__doc__ or "", check, fixable, gate)


RULES: tuple[Rule, ...] = (
    _told("AL001", "syntax-error", E, "reader", True),
    _told("AL002", "duplicate-key", E, "reader", True),
    _told("AL003", "undefined-alias", E, "reader", True),
    _told("AL004", "recursive-alias", E, "reader"),
    _told("AL005", "alias-expansion", E, "reader"),
    _told("AL006", "tab-indentation", E, "reader", True),
    _told("AL007", "extra-document", E, "reader", True),
    _told("AL008", "not-a-workflow-mapping", E, "driver"),
    _rule("AL009", "version-dependent-scalar", W, "mapping", scalars.version_dependent_scalar, True),
    _rule("AL010", "text-lost-to-comment", W, "mapping", scalars.text_lost_to_comment, True),
    _told("AL011", "unquoted-template", E, "shape", True),
    _rule("AL012", "trailing-line-break", W, "mapping", scalars.trailing_line_break, True),
    _rule("AL013", "unknown-tag", W, "mapping", scalars.unknown_tag, True),
    _told("AL101", "missing-field", E, "shape", True),
    _told("AL102", "unknown-key", E, "shape", True),
    _told("AL103", "unknown-step-type", E, "shape", True),
    _told("AL104", "invalid-choice", E, "shape", True),
    _told("AL105", "wrong-type", E, "shape", True),
    _told("AL106", "out-of-range", E, "shape"),
    _rule("AL107", "malformed-name", E, "document", names.malformed_name, True),
    _told("AL108", "misplaced-key", E, "shape", True),
    _rule("AL109", "field-conflict", E, "mapping", shape.field_conflict, True),
    _rule("AL201", "duplicate-step-id", E, "document", graph.duplicate_step_id),
    _rule("AL202", "unknown-dependency", E, "document", graph.unknown_dependency, True),
    _rule("AL203", "self-dependency", E, "step", graph.self_dependency, True),
    _rule("AL204", "dependency-cycle", E, "document", graph.dependency_cycle, True),
    _rule("AL205", "repeated-dependency", W, "step", graph.repeated_dependency, True),
    _rule("AL206", "implied-dependency", H, "document", graph.implied_dependency, True),
    _rule("AL207", "unknown-target", E, "document", routers.unknown_target, True),
    _rule("AL208", "ungated-target", W, "document", routers.ungated_target, True),
    _rule("AL209", "branch-never-chosen", W, "document", routers.branch_never_chosen),
    _rule("AL210", "router-without-default", W, "document", routers.router_without_default, True),
    _rule("AL211", "unreachable-condition", W, "step", routers.unreachable_condition),
    _rule(
        "AL212", "join-never-runs", W, "document", "joining.join_never_runs", gate=gates.has("conditions", "default")
    ),
    _rule("AL301", "expression-syntax", E, "mapping", expressions.expression_syntax, True),
    _rule("AL302", "forbidden-expression", E, "mapping", expressions.forbidden_expression),
    _rule("AL303", "unknown-name", E, "mapping", expressions.unknown_name, True),
    _rule("AL304", "template-syntax", E, "mapping", templates.template_syntax, True),
    _rule("AL305", "constant-condition", W, "step", expressions.constant_condition),
    _rule(
        "AL306",
        "impossible-comparison",
        W,
        "document",
        "comparing.impossible_comparison",
        True,
        gate=gates.has("conditions"),
    ),
    _rule("AL401", "unknown-state-key", W, "document", "state.unknown_state_key", True, gate=gates.may_miss),
    _rule("AL402", "unordered-read", W, "document", "state.unordered_read", True, gate=gates.may_miss),
    _rule("AL403", "conditional-read", I, "document", "state.conditional_read", gate=gates.may_miss),
    _rule("AL404", "output-collision", W, "document", collisions.output_collision),
    _rule("AL405", "unread-output", H, "document", "unread.unread_output", gate=gates.may_be_unread),
    _rule("AL406", "write-through-scalar", E, "document", collisions.write_through_scalar),
    _rule("AL407", "reserved-output", E, "document", collisions.reserved_output),
    _rule("AL408", "unknown-step-result", W, "document", "state.unknown_step_result", True, gate=gates.may_miss),
    _rule("AL409", "lost-vectors", W, "step", "lost.lost_vectors", True, gate=gates.holds("inputs")),
    _rule("AL501", "backoff-not-growing", W, "step", reliability.backoff_not_growing),
    _rule("AL502", "backoff-capped-at-once", W, "step", reliability.backoff_capped_at_once),
    _rule("AL503", "permanent-status-retried", W, "step", reliability.permanent_status_retried, True),
    _rule("AL504", "retries-beyond-run-timeout", W, "document", reliability.retries_beyond_run_timeout),
    _rule("AL505", "retry-without-effect", W, "step", "attempts.retry_without_effect", gate=gates.holds("retry")),
    _rule(
        "AL506", "side-effect-retried", H, "document", "attempts.side_effect_retried", True, gate=gates.has("tool_name")
    ),
    _rule(
        "AL507", "timeout-beyond-run", W, "document", "attempts.timeout_beyond_run", gate=gates.has("config.timeout")
    ),
    _rule(
        "AL508",
        "multiplied-retries",
        I,
        "document",
        "attempts.multiplied_retries",
        gate=gates.has("workflow_path", "workflow_inline"),
    ),
    _rule("AL509", "timeout-never-reached", I, "document", "attempts.timeout_never_reached", gate=gates.has("timeout")),
    _rule("AL510", "meaningless-duration", W, "mapping", reliability.meaningless_duration),
    _rule(
        "AL511", "budget-never-binds", W, "document", "budget.budget_never_binds", gate=gates.has("config.budget_usd")
    ),
    _rule(
        "AL512",
        "budget-stops-everything",
        W,
        "document",
        "budget.budget_stops_everything",
        gate=gates.has("config.budget_usd"),
    ),
    _rule(
        "AL601",
        "unknown-provider",
        E,
        "document",
        "providers.unknown_provider",
        True,
        gate=gates.has("config.provider"),
    ),
    _rule(
        "AL602",
        "model-of-another-provider",
        W,
        "document",
        "providers.model_of_another_provider",
        gate=gates.has("config.provider"),
    ),
    _rule(
        "AL603",
        "attachment-unsupported",
        W,
        "document",
        "providers.attachment_unsupported",
        gate=gates.has("attachments"),
    ),
    _rule(
        "AL604",
        "unknown-tool",
        W,
        "document",
        "calling.unknown_tool",
        True,
        gate=gates.has("tool_name", "tools", "tool_choice", "agents"),
    ),
    _rule(
        "AL605", "bad-tool-arguments", E, "document", "calling.bad_tool_arguments", True, gate=gates.has("tool_name")
    ),
    _rule("AL606", "sandbox-refusal", W, "document", "sandboxing.sandbox_refusal", gate=gates.has("config.sandbox")),
    _rule(
        "AL607",
        "invalid-json-schema",
        E,
        "mapping",
        "schemas.invalid_json_schema",
        gate=gates.holds("response_schema", "output_schema", "tools", "agents"),
    ),
    _rule("AL608", "unknown-agent", E, "document", "calling.unknown_agent", True, gate=gates.has("agent", "agents")),
    _rule("AL609", "agent-cycle", E, "document", "calling.agent_cycle", gate=gates.has("agent", "agents", "tools")),
    _rule(
        "AL610",
        "invalid-pattern",
        E,
        "mapping",
        "patterns.invalid_pattern",
        gate=gates.holds("agents", "constraints"),
    ),
    _rule("AL701", "missing-file", E, "document", composition.missing_file, True),
    _rule("AL702", "broken-subworkflow", E, "document", composition.broken_subworkflow),
    _rule("AL703", "subworkflow-cycle", E, "document", composition.subworkflow_cycle),
    _rule(
        "AL704",
        "unknown-return-key",
        W,
        "document",
        "handing.unknown_return_key",
        True,
        gate=gates.has("return_keys", "input"),
    ),
    _rule(
        "AL705",
        "gate-timeout-incomplete",
        W,
        "step",
        "handing.gate_timeout_incomplete",
        True,
        gate=gates.holds("on_timeout"),
    ),
    _rule(
        "AL706", "internal-webhook-target", W, "document", "handing.internal_webhook_target", gate=gates.has("notify")
    ),
    _rule("AL707", "local-path", E, "document", "elsewhere.local_path", gate=gates.is_remote),
    _rule("AL801", "secret-in-file", W, "mapping", "secrets.secret_in_file", gate=gates.may_hold_secrets),
    _rule(
        "AL802",
        "secret-not-redacted",
        H,
        "document",
        "secrets.secret_not_redacted",
        True,
        gate=gates.may_need_redaction,
    ),
    _told("AL900", "internal-error", E, "driver"),
    _told("AL901", "unknown-suppression", W, "driver", True),
    _told("AL902", "unused-suppression", H, "driver", True),
)

RULE_BY_CODE: dict[str, Rule] = {rule.code: rule for rule in RULES}
RULE_BY_NAME: dict[str, Rule] = {rule.name: rule for rule in RULES}
MAPPING_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.scope == "mapping")
STEP_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.scope in ("mapping", "step"))
DOCUMENT_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.scope == "document")


def names_rules(word: str) -> bool:
    """Tell whether a word means rules: a code, a rule's name, or a family such as ``AL4``."""
    return word in RULE_BY_NAME or (word.startswith("AL") and any(code.startswith(word) for code in RULE_BY_CODE))


def settings_problems(settings: Settings) -> tuple[Problem, ...]:
    """Return what is wrong in settings, in plain words: what their file says, and codes in them that no check has."""
    unknown: list[Problem] = []
    for key, words in (("select", settings.select), ("ignore", settings.ignore), ("severity", settings.severity)):
        for word in words:
            if not names_rules(word):
                near = closest(word, [*RULE_BY_NAME, *RULE_BY_CODE])
                cure = f"did you mean `{near}`?" if near else "`agentloom explain --list` lists them"
                unknown.append(
                    problem_in(settings.path, f"`{word}` in `{key}` is no diagnostic code; {cure}", key, word)
                )
    return (*settings.problems, *unknown)
