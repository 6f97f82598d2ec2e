"""Selections that grow: every stage around a cursor, as text."""

from __future__ import annotations

import pytest

from agentloom.ide.selection import selections
from tests.analysis.checking import A, H, check
from tests.ide.marked import opened

P = "  - id: a\n    type: llm_call\n    prompt: "


def stages(marked: str) -> list[str]:
    document, offset = opened(marked)
    return [document.source.text[slice(*span)] for span in selections(document, offset)]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (
            H + P + '"Sum {state.rep¦ort.text} up"\n',
            [
                "report",
                "state.report",
                "state.report.text",
                "{state.report.text}",
                "Sum {state.report.text} up",
                '"Sum {state.report.text} up"',
                'prompt: "Sum {state.report.text} up"',
            ],
        ),
        (
            H + P + "|\n      one {x}\n      two¦ three\n\n      four\n",
            [
                "two",
                "two three",
                "one {x}\n      two three",
                "one {x}\n      two three\n\n      four",
                "|\n      one {x}\n      two three\n\n      four",
                "prompt: |\n      one {x}\n      two three\n\n      four",
            ],
        ),
        (
            H + "  - {id: r, type: router, conditions: [{expression: state.x == 'a¦b' and y, target: b}]}\n",
            [
                "ab",
                "'ab'",
                "state.x == 'ab'",
                "state.x == 'ab' and y",
                "expression: state.x == 'ab' and y",
                "{expression: state.x == 'ab' and y, target: b}",
                "[{expression: state.x == 'ab' and y, target: b}]",
                "conditions: [{expression: state.x == 'ab' and y, target: b}]",
            ],
        ),
        (
            H + "  - id: t\n    type: tool\n    tool_args: {u: ['state.a¦b']}\n",
            ["ab", "state.ab", "'state.ab'", "['state.ab']", "u: ['state.ab']", "{u: ['state.ab']}"],
        ),
        (
            H + A + "    depends_on:\n      - b\n      - c¦c\n",
            ["cc", "- cc", "- b\n      - cc", "depends_on:\n      - b\n      - cc"],
        ),
        (H + P + "hi {state.a¦\n", ["a", "state.a", "{state.a", "hi {state.a", "prompt: hi {state.a"]),
    ],
)
def test_every_stage(marked: str, expected: list[str]) -> None:
    """From the word over placeholder, line, paragraph and value to the entry."""
    assert stages(marked)[: len(expected)] == expected


def test_from_the_key_to_the_whole_text() -> None:
    """Key, entry, step with its dash, list, entry of the list, top, document."""
    step = A.strip(" \n-")
    found = stages("# top\n\n" + H + A.replace("type", "ty¦pe") + "# end\n")
    assert found == [
        "type",
        "type: llm_call",
        step,
        f"- {step}",
        f"steps:\n  - {step}",
        f"name: w\nsteps:\n  - {step}",
        f"# top\n\nname: w\nsteps:\n  - {step}\n# end\n",
    ]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("¦", [""]),
        ("na¦", ["na"]),
        ("# o¦ne\n# two\nname: w\n", ["one", "# one", "# one\n# two", "# one\n# two\nname: w\n"]),
        ("name: w\n\n¦\n", ["name: w\n\n\n"]),
        (H + A + "    de¦p\n", ["dep"]),
        ("\ufeffname: '😀 é¦é'\r\n", ["éé", "😀 éé", "'😀 éé'", "name: '😀 éé'", "\ufeffname: '😀 éé'\r\n"]),
    ],
)
def test_odd_places(marked: str, expected: list[str]) -> None:
    """Empty and half-typed files, comments, wide characters, blank lines."""
    assert stages(marked)[: len(expected)] == expected
    assert stages(marked)[-1] == marked.replace("¦", "")


def test_escapes_and_folded_lines() -> None:
    """A placeholder behind escapes, or in a folded text, is selected as it is written."""
    text = H + P + '"\\u00e9\\n {state.¦no}"\n'
    assert stages(text)[:3] == ["no", "state.no", "{state.no}"]
    text = H + P + ">\n      a {state.x}\n      b {state.y¦y}\n"
    assert stages(text)[:4] == ["yy", "state.yy", "{state.yy}", "b {state.yy}"]


def test_a_workflow_written_in_place() -> None:
    """Steps inside a step: the inner ones first."""
    inner = (
        "      name: k\n      steps:\n        - id: q\n          type: tool\n          tool_args: {u: '{state.z¦z}'}\n"
    )
    found = stages(H + "  - id: s\n    type: subworkflow\n    workflow_inline:\n" + inner)
    assert found[:3] == ["zz", "state.zz", "{state.zz}"]
    assert any(stage.startswith("- id: q") for stage in found)
    assert any(stage.startswith("- id: s") for stage in found)


def test_places_outside() -> None:
    """Before the start and past the end there is the whole text."""
    document = check(H + A)
    assert selections(document, 10**9)[-1] == (0, len(H + A))
    assert selections(document, -5)[-1] == (0, len(H + A))
