"""Everything that is offered, everywhere: it applies, it reads, and no error is new."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.fixing import errors_of
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import apply_edits
from agentloom.ide.offers import Offer, offers
from agentloom.ide.results import NewFile, Refusal, TextEdits
from agentloom.syntax.reader import read as read_tree
from agentloom.text import Source, Span
from tests.analysis.checking import A, H, check
from tests.conftest import ROOT
from tests.ide.marked import cut
from tests.ide.variants import VARIANTS, in_order, same_line_ends
from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture

GOOD = sorted([*all_fixtures("good*.yaml"), *(ROOT / "examples").rglob("*.loom.yaml")])
KINDS = ("rewrite", "extract", "inline")


def _spans(document: WorkflowDocument, chance: random.Random) -> Iterator[Span]:
    """Yield the places of a few keys and values, and a few selections."""
    length = len(document.source.text)
    steps = [step.place(step.facts.node.span) for step in document.steps]
    for span in chance.sample(steps, min(3, len(steps))):
        at = chance.randint(span.start, span.end)
        yield Span(at, at)
        yield Span(span.start, min(length, span.end + chance.randint(0, 200)))
    for _ in range(3):
        at = chance.randint(0, length)
        yield Span(at, at)


def _tried(document: WorkflowDocument, offer: Offer) -> WorkflowDocument | None:
    """Return the document after an offer; None when it is refused after all."""
    try:
        changes = offer.changes()
    except Refusal as refusal:
        why = str(refusal)
        assert why
        assert not why.endswith("."), why
        return None
    text = document.source.text
    (edits,) = [c.edits for c in changes if isinstance(c, TextEdits) and c.source == document.source]
    said = f"{offer.title}\n{text}"
    assert edits, said
    assert in_order(edits, text), said
    made = [change for change in changes if isinstance(change, NewFile)]
    for file in made:
        assert same_line_ends(text, file.text) or "\n" not in text, said
        assert not document.context.exists(file.path), said
    _comments_stay(document, [apply_edits(text, edits), *(file.text for file in made)], offer)
    files = {file.path: file.text for file in made}
    mended = apply_edits(text, edits)
    assert same_line_ends(text, mended), said
    if files:
        return None  # `after` has read both together
    return analyze_fixture(Path(document.source.uri), mended)


def _comments_stay(document: WorkflowDocument, texts: list[str], offer: Offer) -> None:
    """Every comment is somewhere in the result, unless it is a fix that takes something away."""
    if offer.kind in ("fix", "fix_all") or document.diagnostics:
        return
    after = "\n".join(comment.text for text in texts for comment in read_tree(text).comments)
    lost = [comment.text for comment in document.tree.comments if comment.text.rstrip() not in after]
    assert not lost, f"{offer.title} loses {lost}\n{document.source.text}\n{texts}"


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_refactorings_everywhere(path: Path) -> None:
    """In good files, whatever the line ends: no error is new, and the file begins as it did."""
    chance = random.Random(f"{path.parent.name}{path.name}")
    text = chance.choice(list(VARIANTS.values()))(read_fixture(path)[0])
    document = analyze_fixture(path, text)
    for span in _spans(document, chance):
        for offer in offers(document, span, KINDS):
            if offer.refused is not None:
                continue
            after = _tried(document, offer)
            if after is not None:
                assert errors_of(after) <= errors_of(document), f"{offer.title}\n{after.source.text}"
                assert after.source.text.startswith("\ufeff") == text.startswith("\ufeff")


@pytest.mark.parametrize("seed", range(12))
def test_broken_texts(seed: int) -> None:
    """Half-typed and damaged files: nothing raises, and what is done leaves them no worse."""
    chance = random.Random(seed)
    path = chance.choice(GOOD)
    whole = read_fixture(path)[0]
    for _ in range(3):
        at = chance.randint(0, len(whole))
        text = whole[:at] if chance.random() < 0.5 else whole[:at] + chance.choice("\t{[\"'&*:-#\n") + whole[at:]
        document = analyze_fixture(path, text)
        for span in (Span(at, at), Span(0, len(text)), Span(len(text) + 5, len(text) + 9)):
            for offer in offers(document, span):
                if offer.refused is None:
                    _no_worse(document, offer)


def _no_worse(document: WorkflowDocument, offer: Offer) -> None:
    after = _tried(document, offer)
    if after is not None and offer.kind != "fix":
        assert errors_of(after) <= errors_of(document), f"{offer.title}\n{after.source.text}"


def done(marked: str, title: str) -> str | None:
    """Return a text after the rewriting whose title has these words; None when there is none."""
    text, offset = cut(marked)
    for offer in offers(check(text), Span(offset, offset), ("rewrite",)):
        if title in offer.title:
            (change,) = offer.changes()
            assert isinstance(change, TextEdits)
            return apply_edits(text, change.edits)
    return None


@pytest.mark.parametrize(
    ("marked", "title", "after"),
    [
        ('system_prompt: "H¦i.\\n"\n', "block text", "system_prompt: |\n  Hi.\n"),
        ("system_prompt: |-\n  H¦i.\n", "on one line", "system_prompt: Hi.\n"),
        ("system_prompt: Hi.\ntools: [¦file_read]\n", "a line for each", "system_prompt: Hi.\ntools:\n  - file_read\n"),
    ],
)
def test_agent_files_stay_agent_files(marked: str, title: str, after: str) -> None:
    """What is made of an agent's file is read as one, too: it isn't refused for having no steps."""
    text, offset = cut("name: helper\n" + marked)
    document = analyze(Source("helper.agent.yaml", text), Context(Settings()), None, "agent")
    (offer,) = [o for o in offers(document, Span(offset, offset), ("rewrite",)) if title in o.title]
    (change,) = offer.changes()
    assert isinstance(change, TextEdits)
    assert apply_edits(text, change.edits) == "name: helper\n" + after


def test_a_retry_block_needs_a_place() -> None:
    """In braces that aren't closed yet there is none; the action says so instead of doing nothing."""
    document = check(H + "  - {id: a, type: tool, tool_name: shell_com")
    at = len(H) + 8
    (offer,) = [o for o in offers(document, Span(at, at), ("rewrite",)) if "retry" in o.title]
    with pytest.raises(Refusal, match="no place for"):
        offer.changes()


B = A.replace("id: a", "id: b")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        (H + A + B + "    depends_on: [¦a]\n", "    depends_on:\n      - a\n"),
        (
            H + A + B + "    depends_on: [a,\n  'b¦b'] # why\n    timeout: 1\n",
            "    depends_on: # why\n      - a\n      - 'bb'\n    t",
        ),
        (
            H + A + B + '    depe¦nds_on:\n    - a\n    - "bb"\n    timeout: 1\n',
            '    depends_on: [a, "bb"]\n    timeout: 1\n',
        ),
        (H + A + "    retry:\n      retryable_status_codes: [¦500, 503]\n", "_codes:\n        - 500\n        - 503\n"),
    ],
)
def test_lists_both_ways(marked: str, wanted: str, variant: str) -> None:
    """Editor case: nothing of a list in brackets is left behind; quotes and comments stay, and so do the values."""
    after = done(VARIANTS[variant](marked), "Write `")
    assert after is not None
    wanted = VARIANTS[variant](wanted).removeprefix("\ufeff").removeprefix("# 😀 é ✓\n")
    assert wanted in after
    assert "]" in wanted or "]" not in after


@pytest.mark.parametrize(
    "marked",
    [
        H + A + "    depends_on: [¦]\n",
        H + A + "    depends_on: [a, # ¦why\n      b]\n",
        H + A + "    depends_on: &x [¦b]\n",
        H + A + "    depends_on: [&x ¦b]\n",
        H + "  - {id: a, type: llm_call, prompt: hi, depends_on: [¦b]}\n",
        H + A + "    attachments: [{type: image, source: ¦x}]\n",
    ],
)
def test_lists_that_stay(marked: str) -> None:
    """Empty ones, those with comments, anchors or more than plain items, and those inside brackets."""
    assert done(marked, "brackets") is None
    assert done(marked, "a line for each") is None


P = "  - id: a\n    type: llm_call\n    prompt: "


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("marked", "block"),
    [
        (
            H + P + '"o¦ne\\n\\n  two\\n" # c\n    timeout: 1\n',
            "    prompt: | # c\n      one\n\n        two\n    timeout: 1\n",
        ),
        (H + P + '"o¦ne"\n', "    prompt: |-\n      one\n"),
        (H + P + '"o¦ne\\n\\n\\n"\n    timeout: 1\n', "    prompt: |+\n      one\n\n\n    timeout: 1\n"),
        (H + P + '"  o¦ne\\ntwo"\n', "    prompt: |2-\n        one\n      two\n"),
        (H + P + "o¦ne\n      two\n", "    prompt: |-\n      one two\n"),
        (H + P + "'it''s ¦😀'\n", "    prompt: |-\n      it's 😀\n"),
        (H + P + "\n      on¦e\n", "    prompt: |-\n      one\n"),
    ],
)
def test_texts_to_blocks_and_back(marked: str, block: str, variant: str) -> None:
    """The value is the same, and on one line it is again."""
    text, _ = cut(VARIANTS[variant](marked))
    value = check(text).steps[0].facts.data["prompt"]
    after = done(VARIANTS[variant](marked), "block text")
    assert after is not None
    assert VARIANTS[variant](block).removeprefix("\ufeff").removeprefix("# 😀 é ✓\n") in after
    assert check(after).steps[0].facts.data["prompt"] == value
    place = after.index("prompt") + 2
    back = done(after[:place] + "¦" + after[place:], "on one line")
    assert back is not None
    assert check(back).steps[0].facts.data["prompt"] == value
    assert Counter(d.code for d in check(back).diagnostics) <= Counter(d.code for d in check(text).diagnostics)


@pytest.mark.parametrize("value", ['"on¦e\\ttwo \\n"', '"o¦\\u0007"', "|\n      o¦ne\n", '""¦', "&a o¦ne"])
def test_texts_that_no_block_holds(value: str) -> None:
    """Blanks at a line's end, control characters, empty texts, those that are blocks or shared already."""
    assert done(H + P + value + "\n", "block text") is None


def test_what_is_no_prose_stays() -> None:
    """Only fields that hold prose are offered as a block: an id is none."""
    assert done(H + A.replace("id: a", "id: 'a¦'"), "block text") is None
