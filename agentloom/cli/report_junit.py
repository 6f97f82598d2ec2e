"""Diagnostics as a JUnit report, for servers that show test results: one case a finding, one passing case a clean file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def junit(files: Sequence[str], diagnostics: Iterable[Mapping[str, Any]], problems: Sequence[str], strict: bool) -> str:
    """Return the report. Errors, and warnings when ``strict``, are failures; the rest is output of passing cases.

    ``files`` are all that were checked; ``problems`` say what couldn't be.
    """
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in files}
    for diagnostic in diagnostics:
        found.setdefault(diagnostic["path"], []).append(diagnostic)
    cases: list[str] = []
    failures = 0
    for name, told in found.items():
        if not told:
            cases.append(f"    <testcase classname={_attribute(name)} name={_attribute(name)}/>")
        for diagnostic in told:
            fails = diagnostic["severity"] == "error" or (strict and diagnostic["severity"] == "warning")
            failures += fails
            cases.append(_case(name, diagnostic, fails))
    for problem in problems:
        cases.append(f'    <testcase classname="agentloom" name={_attribute(problem)}>')
        cases.append(f"      <error message={_attribute(problem)}/>\n    </testcase>")
    total = sum(case.lstrip().startswith("<testcase") for case in cases)
    counts = f'tests="{total}" failures="{failures}" errors="{len(problems)}"'
    return "\n".join([
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="agentloom" {counts}>',
        f'  <testsuite name="agentloom validate" {counts}>',
        *cases,
        "  </testsuite>",
        "</testsuites>",
    ])  # fmt: skip


def _case(name: str, diagnostic: Mapping[str, Any], fails: bool) -> str:
    line, column = diagnostic["line"], diagnostic["column"]
    title = f"{diagnostic['code']} {diagnostic['name']} ({line}:{column})"
    text = f"{name}:{line}:{column}: {diagnostic['severity']}[{diagnostic['code']}]: {diagnostic['message']}"
    head = f'    <testcase classname={_attribute(name)} name={_attribute(title)} file={_attribute(name)} line="{line}">'
    if fails:
        kind = f"type={_attribute(diagnostic['code'])}"
        body = f"<failure message={_attribute(diagnostic['message'])} {kind}>{_text(text)}</failure>"
    else:
        body = f"<system-out>{_text(text)}</system-out>"
    return f"{head}\n      {body}\n    </testcase>"


def _text(text: str) -> str:
    return escape(re.sub(_NOT_XML, "\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(re.sub(_NOT_XML, "\ufffd", text))
