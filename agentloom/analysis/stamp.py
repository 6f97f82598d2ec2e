"""From findings to diagnostics: final ranges, names and severities, suppressions, order. The only place that does it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from agentloom.analysis.rules.registry import RULE_BY_CODE
from agentloom.analysis.settings import Settings
from agentloom.analysis.suppress import Hiding, Suppression, suppressions
from agentloom.diagnostics import Diagnostic, Edit, Finding, Fix, Severity, in_one_line
from agentloom.similar import closest
from agentloom.syntax.tree import Tree
from agentloom.text import LineTable, Span

# When two codes would tell one mistake twice, the first of each pair stays silent where the second speaks on the same place.
YIELDS_TO: tuple[tuple[str, str], ...] = (
    ("AL009", "AL105"),
    ("AL009", "AL107"),
    ("AL010", "AL001"),
    ("AL012", "AL701"),
    ("AL601", "AL009"),
    ("AL601", "AL012"),
    ("AL304", "AL011"),
    ("AL105", "AL011"),
    ("AL202", "AL203"),
    ("AL205", "AL202"),
    ("AL205", "AL203"),
    ("AL404", "AL407"),
)


def stamp(findings: Iterable[Finding], tree: Tree, lines: LineTable, settings: Settings) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a document, sorted by place."""
    marks = suppressions(tree, lines)
    seen: set[tuple[str, Span, str]] = set()
    taken: dict[str, set[int]] = {}
    found = list(findings)
    told = {(finding.code, finding.span, finding.message) for finding in found}
    broken = sorted(finding.span.start for finding in found if finding.code == "AL001")
    templates = sorted(finding.span for finding in found if finding.code == "AL011") if broken else []
    strong = {second for _, second in YIELDS_TO}
    for finding in found:
        if finding.code in strong:
            taken.setdefault(finding.code, set()).add(finding.span.start)
    told_once: list[tuple[Diagnostic, bool]] = []
    for finding in found:
        key = (finding.code, finding.span, finding.message)
        if any(
            related.path is None
            and related.span != finding.span
            and (finding.code, related.span, finding.message) in told
            for related in finding.related
        ):
            continue  # seen through an alias, and told where it stands
        if finding.code == "AL105" and _holds_one(finding.span, broken):
            continue  # what was meant can't be told while the text inside it is broken
        if finding.code == "AL001" and _lies_in_one(finding.span.start, templates):
            continue  # such as the brackets of an unquoted `{state.items[0]}`
        if key in seen or any(
            finding.code == weak and finding.span.start in taken.get(strong_, ()) for weak, strong_ in YIELDS_TO
        ):
            continue
        seen.add(key)
        diagnostic = _diagnostic(finding, lines, settings)
        refuses = _refuses(finding)
        if refuses or _wanted(diagnostic, settings):
            told_once.append((diagnostic, refuses))
    told_once.sort(key=lambda one: one[0].key)
    if not marks:
        return tuple([diagnostic for diagnostic, _ in told_once])
    hiding, in_vain = Hiding(marks), Hiding(marks)
    result: list[Diagnostic] = []
    for diagnostic, refuses in told_once:
        if refuses:
            in_vain.hides(diagnostic)
        elif hiding.hides(diagnostic):
            continue
        result.append(diagnostic)
    for finding in _about_suppressions(tree.text, marks, hiding.used, in_vain.used, result):
        diagnostic = _diagnostic(finding, lines, settings)
        if _wanted(diagnostic, settings):
            result.append(diagnostic)
    result.sort(key=lambda d: d.key)
    return tuple(result)


def _holds_one(span: Span, places: Sequence[int]) -> bool:
    """Tell whether one of the sorted places lies in a span."""
    at = bisect_left(places, span.start)
    return at < len(places) and places[at] < span.end


def _lies_in_one(place: int, spans: Sequence[Span]) -> bool:
    """Tell whether a place lies in one of the sorted spans."""
    at = bisect_right(spans, (place, place)) - 1
    return at >= 0 and place < spans[at].end


def _refuses(finding: Finding) -> bool:
    """Tell whether the engine couldn't run the file: such an error can be neither hidden nor softened."""
    return (finding.severity or RULE_BY_CODE[finding.code].severity) is Severity.ERROR


def _diagnostic(finding: Finding, lines: LineTable, settings: Settings) -> Diagnostic:
    rule = RULE_BY_CODE[finding.code]
    severity = None
    refuses = _refuses(finding)
    if not refuses:
        severity = settings.severity.get(finding.code) or settings.severity.get(rule.name)
    return Diagnostic(
        code=finding.code,
        name=rule.name,
        severity=severity or finding.severity or rule.severity,
        span=lines.on_one_line(finding.span),
        message=in_one_line(finding.message),
        related=finding.related,
        fixes=finding.fixes,
        tags=finding.tags,
        refuses=refuses,
    )


def _wanted(diagnostic: Diagnostic, settings: Settings) -> bool:
    """Apply the settings' `select` and `ignore`."""
    if settings.select and not _listed(diagnostic, settings.select):
        return False
    return not _listed(diagnostic, settings.ignore)


def _listed(diagnostic: Diagnostic, codes: Sequence[str]) -> bool:
    return any(diagnostic.code.startswith(code) or diagnostic.name == code for code in codes)


def _about_suppressions(
    text: str, marks: Sequence[Suppression], used: set[int], in_vain: set[int], shown: Sequence[Diagnostic]
) -> list[Finding]:
    """Return what is wrong with suppression comments.

    ``used`` are the indices of those that hide something, ``in_vain`` of those that name an error, which can't be hidden; ``shown``
    are the diagnostics that stay, by place.
    """
    names = {rule.name for rule in RULE_BY_CODE.values()}
    starts = [d.span.start for d in shown]
    in_comment = Counter(mark.comment for mark in marks)
    meant: dict[tuple[str, tuple[str, ...]], str | None] = {}
    found: list[Finding] = []
    for at, mark in enumerate(marks):
        if not _known(mark.code, names):
            first, last = 0, len(shown)
            if mark.covers is not None:
                first, last = bisect_left(starts, mark.covers.start), bisect_right(starts, mark.covers.end)
            here = tuple(dict.fromkeys(word for d in shown[first:last] for word in (d.code, d.name)))
            if (mark.code, here) not in meant:
                meant[mark.code, here] = closest(mark.code, here) or closest(mark.code, [*RULE_BY_CODE, *names])
            near = meant[mark.code, here]
            cure = f"did you mean `{near}`?" if near else "`agentloom explain --list` lists all"
            fixes = (Fix(f"change to `{near}`", (Edit(mark.words, near),), safe=False),) if near else ()
            found.append(Finding("AL901", mark.words, f"`{mark.code}` is no code of a check; {cure}", fixes=fixes))
        elif at not in used:
            word = f"`{mark.code}`" if mark.words.end > mark.words.start else "this comment"
            message = f"{word} hides nothing here; remove it"
            if at in in_vain:
                message = f"{word} can't hide an error that refuses the run; mend that and remove this"
            edit = _without(text, mark, in_comment[mark.comment])
            title = f"remove {word}" if edit.span.start > mark.comment.start else "remove the comment"
            span = mark.words if mark.words.end > mark.words.start else mark.comment
            found.append(
                Finding("AL902", span, message, fixes=(Fix(title, (edit,), safe=False),), tags=("unnecessary",))
            )
    return found


def _without(text: str, mark: Suppression, codes: int) -> Edit:
    """Return the edit that takes one code out of its comment, or the whole comment when it holds no other."""
    start, end = mark.comment
    if codes > 1:
        rest = text[mark.words.end : end]
        behind = len(rest) - len(rest.lstrip(" ,"))
        if rest[behind : behind + 1] != "]":
            return Edit(Span(mark.words.start, mark.words.end + behind), "")
        before = text[start : mark.words.start]
        return Edit(Span(start + len(before.rstrip(" ,")), mark.words.end), "")
    start = len(text[max(0, start - 500) : start].rstrip(" \t")) + max(0, start - 500)
    if start == 0 or text[start - 1] in "\r\n":  # on a line of its own: the whole line goes
        end += 2 if text.startswith("\r\n", end) else 1 if end < len(text) else 0
    return Edit(Span(start, end), "")


def _known(code: str, names: set[str]) -> bool:
    return code in names or (code.startswith("AL") and any(known.startswith(code) for known in RULE_BY_CODE))
