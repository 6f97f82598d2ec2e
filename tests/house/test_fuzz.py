"""Bad input never gives a traceback: texts made up at random, files with damage, bytes that are no text. Bounded in number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.cli.app import app
from agentloom.core.loader import load_text
from agentloom.diagnostics import apply_edits
from agentloom.errors import WorkflowError
from agentloom.model.workflow import build_workflow
from agentloom.syntax.backend import parses
from agentloom.syntax.decode import decode
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.conftest import ROOT
from tests.house.corpus import FOLDERS, check, files, sound

TEXTS = [path.read_bytes().decode("utf-8", "replace") for path in files(*FOLDERS)]

# The codes of the reader: without one of them, a text is YAML.
READING = {f"AL{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 11)}

# What YAML, templates and expressions are made of.
WORDS = r"""steps: config: retry: conditions: agents: workflow_inline: default: prompt: id: - : ? & * ! { } [ ] " ' # , > | >- |2 %YAML
--- ... null ~ yes 1_000 0x1F .inf 2026-01-01 @ ` \u00e9 {state. {{ }} state.x steps.a.output lambda 1 < == and ) ( <<: *a &a !!str 😀 é"""
PHRASES = (
    "name: w",
    "  - id: a\n    type: llm_call\n",
    '    prompt: "{state.x}"\n',
    "    depends_on: [a, b]\n",
    "type: router",
    "target: a",
    "    ",
)
UNSEEN = ("\t", "\x00", "\x07", "\x0c", "\x85", "\u2028", "\ufeff", "\r", "\r\n", "\ud800")
PIECES = st.sampled_from([*WORDS.split(), *PHRASES, *UNSEEN])
YAML_LIKE = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", "\n", "\n  ", "\n    "])), max_size=40).map(
    lambda parts: "name: w\nsteps:\n  - id: a\n    type: llm_call\n" + "".join(piece + gap for piece, gap in parts)
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return a file of ours with a few pieces cut out, doubled, or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + draw(st.one_of(PIECES, st.text(max_size=5), st.just(text[start:end] * 2))) + text[end:]
    return text


FUZZ = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FUZZ
@given(st.one_of(YAML_LIKE, mutated(), mutated(), st.text(max_size=200)))
def test_made_up_text(text: str) -> None:
    """YAML-like text, files with damage, any text: a verdict, and only sound places in it.

    The loader agrees, what is right has a model, what is no YAML is never taken for some, and every cure can be carried out.
    """
    document = analyze(Source("<text>", text), Context(tools=BUILTIN_TOOLS), kind="workflow")
    sound(document)
    wrong = any(found.severity == 1 for found in document.diagnostics)
    assert refused(text) == wrong
    if not wrong:
        assert document.workflow == build_workflow(dict(document.data))
    if not READING & {found.code for found in document.diagnostics}:
        assert parses(text)
    for found in document.diagnostics:
        for fix in found.fixes:
            sound(check(apply_edits(text, fix.edits)))


@FUZZ
@given(st.one_of(YAML_LIKE, mutated()), st.sampled_from(["text", "json"]))
def test_made_up_text_on_standard_input(text: str, form: str) -> None:
    """`validate -` says something in either form, and ends with 0 or 1."""
    data = text.encode("utf-8", "surrogatepass")
    done = CliRunner().invoke(app, ["validate", "-", "--severity", "hint", "--format", form], input=data)
    assert done.exit_code in (0, 1), done.output
    assert "AL900" not in done.stdout
    if form == "json":
        errors = json.loads(done.stdout)["summary"]["errors"]
        assert (done.exit_code == 1) == (errors > 0)


ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@st.composite
def odd_bytes(draw: st.DrawFn) -> bytes:
    """Return bytes: any, or a file of ours in some encoding, with bytes put in or cut off."""
    text = draw(st.sampled_from(TEXTS))
    data = text.encode(draw(st.sampled_from(["utf-8-sig", "utf-16", "utf-32", *ENCODINGS])))
    at = draw(st.integers(0, len(data)))
    noise = draw(st.binary(max_size=8))
    return draw(st.sampled_from([noise, data, data[:at], data[:at] + noise + data[at:], data[at:]]))


@FUZZ
@given(odd_bytes())
def test_any_bytes(data: bytes) -> None:
    """Bytes always become a text; what is wrong with them has a place in it; and the text is checked like any other."""
    text, finding = decode(data)
    sound(check(text))
    if finding is None:
        assert data in [text.encode(encoding) for encoding in ENCODINGS], "nothing was lost"
    else:
        assert 0 <= finding.span.start <= finding.span.end <= len(text)


def refused(text: str) -> bool:
    """Tell whether the engine's loader refuses a text."""
    try:
        load_text(text)
    except WorkflowError:
        return True
    return False


def damaged(random: Random) -> bytes:
    """Return bytes that are no text at all, or a file of ours with bytes put in, cut off, or turned round."""
    data = random.choice(TEXTS).encode()
    at = random.randrange(len(data))
    noise = random.randbytes(random.randrange(1, 40))
    return random.choice([noise, data[:at] + noise + data[at:], data[:at] + noise, data[:at] + data[at:][::-1]])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_on_the_command_line(seed: int, tmp_path: Path) -> None:
    """An exit code and words, never a traceback."""
    random = Random(seed)
    names = [f"{at}.loom.yaml" for at in range(12)]
    for name in names:
        (tmp_path / name).write_bytes(damaged(random))
    for command in (["validate", *names], ["validate", "--format", "json", *names], ["run", names[0]]):
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", *command],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lsp'}", "PATH": "/usr/bin:/bin"},
        )
        said = (done.stdout + done.stderr).decode("utf-8")
        assert done.returncode in (0, 1, 2), said
        assert "Traceback" not in said
        assert "AL900" not in said
