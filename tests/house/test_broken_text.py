"""No text makes the check raise: every prefix, every deletion of a line or a character, and texts made up at random."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentloom.analysis.analyze import AnalysisCache
from tests.conftest import ROOT
from tests.house.corpus import check, files, sound

FILES = files()
TEXTS = {path: path.read_bytes().decode("utf-8") for path in FILES if b"\0" not in path.read_bytes()}
EVERY = 23
IDS = [str(path.relative_to(ROOT)) for path in TEXTS]


def edited(path: Path, texts: Iterable[str]) -> None:
    """Check texts one after the other as an editor does, with what is known of the one before; now and then compare with
    a check from nothing, which has to say the same.
    """
    cache = AnalysisCache()
    for number, text in enumerate(texts):
        document = check(text, path, cache)
        sound(document)
        if number % EVERY == 0:
            assert document.diagnostics == check(text, path).diagnostics, text


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_every_prefix(path: Path) -> None:
    """As if the file were being typed from the beginning."""
    text = TEXTS[path]
    edited(path, (text[:end] for end in range(len(text) + 1)))


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_without_any_one_line(path: Path) -> None:
    """As if a line had been cut."""
    lines = TEXTS[path].splitlines(keepends=True)
    edited(path, ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))))


@pytest.mark.parametrize("path", TEXTS, ids=IDS)
def test_without_any_one_character(path: Path) -> None:
    """As if a key had been missed."""
    text = TEXTS[path]
    edited(path, (text[:at] + text[at + 1 :] for at in range(len(text))))


# What YAML, templates and expressions are made of.
PIECES = st.sampled_from(
    [
        *(
            "name: w",
            "steps:",
            "  - id: a",
            "    type: llm_call",
            '    prompt: "{state.x}"',
            "    depends_on: [a, b]",
            "config:",
            "retry:",
        ),
        *(
            "conditions:",
            "expression: ",
            "target: a",
            "agents:",
            "workflow_inline:",
            "type: router",
            "type: tool",
            "default: a",
        ),
        *(
            "  - ",
            ": ",
            "- ",
            "? ",
            "&a ",
            "*a",
            "<<: *a",
            "!!str ",
            "{",
            "}",
            "[",
            "]",
            '"',
            "'",
            "#",
            ",",
            ">",
            "|",
            ">-",
            "|2",
            "%YAML 1.2",
        ),
        *(
            "---",
            "...",
            "\t",
            "    ",
            "null",
            "~",
            "yes",
            "1_000",
            "0x1F",
            ".inf",
            "2026-01-01",
            "@",
            "`",
            "\\u00e9",
            "\x07",
            "\x85",
            "\u2028",
        ),
        *(
            "\ufeff",
            "😀",
            "é",
            "\r",
            "\r\n",
            "\x0c",
            "state.x == 1",
            "{state.",
            "{{",
            "}}",
            "steps.a.output",
            "lambda: 0",
            "1 <",
        ),
    ]
)
YAML_LIKE = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", "\n", "\n  ", "\n    "])), max_size=40).map(
    lambda parts: "name: w\nsteps:\n  - id: a\n    type: llm_call\n" + "".join(piece + gap for piece, gap in parts)
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return a file of ours with a few pieces cut out, doubled, or put in."""
    text = TEXTS[draw(st.sampled_from(sorted(TEXTS)))]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + draw(st.one_of(PIECES, st.text(max_size=5), st.just(text[start:end] * 2))) + text[end:]
    return text


FUZZ = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FUZZ
@given(st.one_of(YAML_LIKE, mutated(), st.text(max_size=200)))
def test_made_up_text(text: str) -> None:
    """YAML-like text, files with damage, any text: a verdict, and only sound places in it."""
    sound(check(text))


def damaged(random: Random) -> bytes:
    """Return bytes that are no text at all, or a file of ours with bytes put in, cut off, or turned round."""
    data = random.choice(list(TEXTS.values())).encode()
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
        assert done.returncode in (1, 2), said
        assert "Traceback" not in said
        assert "AL900" not in said
