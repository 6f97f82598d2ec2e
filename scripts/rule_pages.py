"""The pages of the rules, made from their docstrings, their fixtures and the program's own output."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "rules"

SEVERITY_WORDS = {
    "ERROR": "**Error**: the file is refused, nothing of it runs.",
    "WARNING": "**Warning**: the file runs, and almost surely not as meant.",
    "INFORMATION": "**Information**: worth knowing.",
    "HINT": "**Hint**: shown in editors, and on the command line with `--severity hint`.",
}


def pages() -> dict[Path, str]:
    """Return every page and the index, by path."""
    from agentloom.analysis.rules.registry import RULES

    result = {PAGES / f"{rule.code}.md": _page(rule.code) for rule in RULES}
    result[PAGES / "README.md"] = _index()
    return result


def _page(code: str) -> str:
    from agentloom.analysis.rules.registry import RULE_BY_CODE

    rule = RULE_BY_CODE[code]
    summary, *reasons, cure = _paragraphs(rule.doc)
    fixable = " There is a quick fix." if rule.fixable else ""
    parts = [f"# {code} {rule.name}", summary, f"{SEVERITY_WORDS[rule.severity.name]}{fixable}"]
    if reasons:
        parts += ["## Why", *reasons]
    parts += ["## What to do", cure]
    folder = ROOT / "tests" / "fixtures" / "rules" / code
    if (folder / "bad.yaml").exists():
        text, printed = _example(folder / "bad.yaml")
        parts += ["## Example", f"```yaml\n{text}```", "`agentloom validate` says:", f"```text\n{printed}```"]
        good = _shown(_read(folder / "good.yaml"))
        fixed = folder / "fixed.yaml"
        same = fixed.exists() and _shown(_read(fixed)) == good
        parts += ["The quick fix makes it this:" if same else "This is right:", f"```yaml\n{good}```"]
    if rule.severity.name != "ERROR":
        hidden = (
            f"`# agentloom: ignore[{code}]` behind the line, or on the line above a key for its whole value; for a whole file "
            f'`# agentloom: ignore-file[{code}]`; for a project `ignore = ["{code}"]` in the settings.'
        )
        parts += ["## Hiding it", hidden]
    return "\n\n".join(parts) + "\n"


def _paragraphs(doc: str) -> list[str]:
    return [" ".join(part.split()) for part in doc.strip().split("\n\n")]


def _read(path: Path) -> str:
    from tests.rule_fixtures import read_fixture

    return read_fixture(path)[0]


def _shown(text: str) -> str:
    """Return a text as it can stand in a page: odd characters visible, a line break at its end."""
    shown = "".join(c if c in "\n" or c.isprintable() else "�" if c == "\ufeff" else c for c in text)
    return shown.replace("\r\n", "\n").rstrip("\n") + "\n"


def _example(path: Path) -> tuple[str, str]:
    from agentloom.cli.console import Look
    from agentloom.cli.render import render
    from agentloom.text import LineTable
    from tests.rule_fixtures import analyze_fixture

    text = _read(path)
    document = analyze_fixture(path, text)
    look = Look(color=False, width=100, encoding="utf-8")

    def elsewhere(name: str) -> tuple[str, LineTable | None]:
        return Path(name).name, LineTable(Path(name).read_text(encoding="utf-8"))

    lines: list[str] = []
    for diagnostic in document.diagnostics:
        lines.extend(line.rstrip() for line in render(diagnostic, path.name, document.lines, look, elsewhere))
        lines.append("")
    return _shown(text), "\n".join(lines).rstrip("\n") + "\n"


def _index() -> str:
    from agentloom.analysis.rules.registry import RULES

    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity.word} | {'yes' if rule.fixable else ''} | {rule.summary} |"
        for rule in RULES
    ]
    head = (
        "# Rules\n\nEvery check has a code, a name and a page. `agentloom explain AL204` prints a page offline. Errors refuse the file; "
        "warnings don't, unless `--strict` is given or the settings make them errors.\n"
    )
    return head + "\n| code | name | severity | fix | what it finds |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write every page; remove pages of rules that are gone."""
    wanted = pages()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.md"):
        if path not in wanted:
            path.unlink()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.path.insert(0, str(ROOT / "lsp"))
    main()
