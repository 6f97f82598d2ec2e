"""`explain`, `schema`, `info` and `lsp`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom import __version__
from agentloom.analysis.rules.registry import RULES
from agentloom.cli.console import Look
from agentloom.cli.explain import plain
from agentloom.cli.lsp import parse_address
from agentloom.errors import UsageError
from tests.cli.conftest import Call, environment

# --- explain ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["AL204", "al204", "dependency-cycle", "Dependency-Cycle", " AL204 "])
def test_explain_takes_codes_and_names(call: Call, word: str) -> None:
    """Whatever the case."""
    done = call("explain", word)
    assert done.code == 0
    assert done.out.startswith("AL204 dependency-cycle\n")


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_every_rule_has_a_page_that_reads_as_text(call: Call, code: str) -> None:
    """Its code and name on top, no Markdown left over, nothing that a terminal can't show."""
    done = call("explain", code)
    assert done.code == 0
    assert done.out.startswith(code)
    assert len(done.out.splitlines()) > 5
    assert "```" not in done.out
    assert not any(line.startswith("#") for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dependency-cicle"], "`dependency-cicle` is no diagnostic code; did you mean `dependency-cycle`?"),
        (["AL999"], "`AL999` is no diagnostic code; did you mean `AL"),
        (["xyz"], "`agentloom explain --list` lists them"),
        ([], "give one code or name, or `--list`"),
        (["AL204", "--list"], "give one code or name, or `--list`"),
    ],
    ids=" ".join,
)
def test_explain_says_what_is_meant(call: Call, arguments: list[str], words: str) -> None:
    """Wrong usage, with a cure."""
    done = call("explain", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_the_list_has_every_code(call: Call) -> None:
    """With severity, name and a line about each."""
    lines = call("explain", "--list").out.splitlines()
    assert len(lines) == len(RULES)
    for line, rule in zip(lines, RULES, strict=True):
        assert line.split()[:3] == [rule.code, rule.severity.word, rule.name]
        assert rule.summary in line


def test_a_page_as_text() -> None:
    """Headings, code, links, emphasis and comments."""
    page = (
        "<!-- made by hand -->\n# AL000 name\n\n\nOne **bold** [link](https://x.y) and [AL204](#al204).\n\n## Example\n\n"
        "```yaml\n# a comment\n\nname: w\n```\n\nEnd `code`.\n"
    )
    assert list(plain(page, Look())) == [
        "AL000 name",
        "",
        "One bold link (https://x.y) and AL204.",
        "",
        "Example",
        "",
        "    # a comment",
        "",
        "    name: w",
        "",
        "End `code`.",
    ]
    assert "\x1b[1mExample\x1b[0m" in list(plain(page, Look(color=True)))


# --- schema and info -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["workflow", "agent"])
def test_schema_is_the_file_byte_for_byte(root: Path, kind: str) -> None:
    """In any encoding of the terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "schema", kind],
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
        check=True,
    )
    assert done.stdout == (root / "schema" / f"{kind}.schema.json").read_bytes()


def test_schema_without_a_kind_is_the_workflow_s(call: Call) -> None:
    """The one that most people want."""
    assert json.loads(call("schema").out) == json.loads(call("schema", "workflow").out)
    assert call("schema", "tool").code == 2


def test_info(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions, and of keys and addresses only whether they are set; what is wrong in the settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agentloom.toml").write_text("nope = 1\n", encoding="utf-8")
    secret = "sk-proj-ABCDEFGH12345678"
    out = call(
        "info", OPENAI_API_KEY=secret, ANTHROPIC_API_KEY="", OPENAI_BASE_URL=f"https://user:{secret}@host/v1"
    ).out
    assert out.startswith(f"agentloom {__version__}\nPython 3.")
    assert "  OPENAI_API_KEY          set\n" in out
    assert "  ANTHROPIC_API_KEY       not set\n" in out
    assert "  OPENAI_BASE_URL          set\n" in out
    assert not any(secret[at : at + 4] in out for at in range(len(secret) - 3))
    assert f"  {tmp_path / 'agentloom.toml'}\n  problem: " in out


# --- lsp ------------------------------------------------------------------------------------------------------------------------


def message(method: str, number: int | None = None, **params: object) -> bytes:
    """Return one message of the protocol."""
    body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    data = json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data)


@pytest.mark.parametrize("options", [[], ["--stdio"]])
def test_lsp_speaks_over_standard_input_and_output(options: list[str]) -> None:
    """From initialize to exit; nothing else is written."""
    talk = (
        message("initialize", 1, capabilities={}, processId=None, rootUri=None)
        + message("initialized")
        + message("shutdown", 2)
        + message("exit")
    )
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "lsp", *options],
        input=talk,
        capture_output=True,
        env=environment(),
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Content-Length: ")
    assert b'"capabilities"' in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:4000", ("127.0.0.1", 4000)),
        ("localhost:0", ("localhost", 0)),
        (":4000", ("127.0.0.1", 4000)),
        ("[::1]:4000", ("::1", 4000)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    """Names, numbers, IPv6 and a port alone."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "4000", "host", "host:", "host:http", "host:70000", "host:-1", "host:１"])
def test_what_is_no_address(text: str) -> None:
    """Wrong usage, with an example."""
    with pytest.raises(UsageError, match=r"such as 127\.0\.0\.1:4000"):
        parse_address(text)


def test_stdio_and_tcp_contradict_each_other(call: Call) -> None:
    """One of them."""
    assert call("lsp", "--stdio", "--tcp", ":4000").code == 2
