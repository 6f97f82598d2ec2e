"""A project's own tools, learned from a child process: whatever their modules do when they are imported."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.learning import Learned, learn, stamps
from agentloom.tools.registry import tools_in

TOOL = """\
from agentloom.tools.base import tool


@tool("add", "Add two numbers.")
def add(a: int, b: int = 2) -> int:
    return a + b
"""


def learned(folder: Path, code: str, within: float = 20.0) -> Learned:
    """Learn a module `mine` with some code."""
    (folder / "mine.py").write_text(code)
    return learn(("mine",), folder, within)


def test_names_descriptions_and_arguments_are_learned(tmp_path: Path) -> None:
    """From a function and from a class; nothing of it is imported here; what was read is known."""
    (tmp_path / "helper.py").write_text("WORD = 'word'\n")
    code = TOOL + (
        "from agentloom.tools.base import BaseTool\nimport helper\n"
        "class Shout(BaseTool):\n    name = 'shout'\n    description = helper.WORD\n    returns = {'type': 'string'}\n"
        "    async def execute(self, text: str) -> str:\n        return text.upper()\n"
    )
    found = learned(tmp_path, code)
    assert found.complete
    assert list(found.tools) == [*BUILTIN_TOOLS, "add", "shout"]
    add, shout = found.tools["add"], found.tools["shout"]
    assert add.description == "Add two numbers."
    assert add.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert (shout.description, shout.returns) == ("word", {"type": "string"})
    assert {"mine", "helper"}.isdisjoint(sys.modules)
    assert {str(tmp_path / "mine.py"), str(tmp_path / "helper.py")} <= set(found.files)


def test_a_module_in_a_package_that_takes_the_place_of_a_built_in_tool(tmp_path: Path) -> None:
    """Its arguments are what counts."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text(TOOL.replace("add", "file_read"))
    found = learn(("pkg.tools",), tmp_path)
    assert list(found.tools["file_read"].parameters["properties"]) == ["a", "b"]


UNUSABLE = (
    ("import nowhere\n", "can't be imported: ModuleNotFoundError: No module named 'nowhere'"),
    ("1 / 0\n", "can't be imported: ZeroDivisionError: division by zero"),
    ("def (\n", "can't be imported: SyntaxError: "),
    ("import sys; sys.exit(3)\n", "can't be imported: it ends the program"),
    ("raise KeyboardInterrupt\n", "can't be described: KeyboardInterrupt()"),
    ("def f(): f()\nf()\n", "can't be imported: RecursionError: "),
    ("x = 1\n", "defines no tool; make one with `@tool(name, description)`"),
    (TOOL.replace('"add"', '"a\\nb"'), "a tool can't be named 'a\\nb'; use up to 64 letters of English, digits"),
    (TOOL.replace("a: int", "a: object()"), "tool `add`: its arguments can't be described in JSON Schema"),
    (TOOL.replace("a: int", "a: nothing"), "can't be imported: NameError"),
    (TOOL.replace("a: int", "a: 'nothing'"), "tool `add`: its type hints can't be read: name 'nothing'"),
    (TOOL + "add.returns = {'type': 'strnig'}\n", "tool `add`: its arguments and its result must be described in JSON"),
    (TOOL + "add.description = None\n", "tool `add`: its arguments and its result must be described in JSON Schema"),
    (TOOL + "add.returns = {'x': object()}\n", "can't be described: TypeError("),
    (TOOL + "add.returns = {}\nadd.returns['x'] = add.returns\n", "can't be described: "),
)


def test_modules_that_cannot_be_used(tmp_path: Path) -> None:
    """The reason for each in one line; other tools are known all the same, and that there may be more."""
    names = [f"m{number}" for number in range(len(UNUSABLE))]
    for name, (code, _) in zip(names, UNUSABLE, strict=True):
        (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "good.py").write_text(TOOL)
    found = learn((*names, "good"), tmp_path, 20.0)
    assert [module for module, _ in found.faults] == names
    assert not found.complete
    assert list(found.tools) == [*BUILTIN_TOOLS, "add"]
    for (module, why), (_, says) in zip(found.faults, UNUSABLE, strict=True):
        assert why.startswith((says, f"tools module `{module}` {says}")), why
        assert "\n" not in why
        assert str(tmp_path / f"{module}.py") in found.files


@pytest.mark.parametrize("code", ["import os; os._exit(0)\n", "import os; os.kill(os.getpid(), 9)\n"])
def test_a_module_that_ends_the_process(tmp_path: Path, code: str) -> None:
    """Without a word: it is told which one it was."""
    found = learned(tmp_path, code)
    assert found.faults == (("mine", "tools module `mine` ends the process that imports it"),)


QUIET = """
import os, sys, threading, time, atexit, signal, subprocess
print("hello" * 100000)
sys.stdout.write('{"done": true}\\n')
sys.stdout.flush()
for fd in range(64):
    try:
        os.write(fd, b"\\n\\xff{]\\n")
    except OSError:
        pass
sys.stdin.read()
sys.stdout.close()
os.close(1)
os.close(2)
atexit.register(time.sleep, 1000)
threading.Thread(target=time.sleep, args=(1000,)).start()
subprocess.Popen(["sleep", "1000"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.chdir("/")
"""


@pytest.mark.parametrize(
    "noise", [QUIET, "import os, time\nif os.fork() == 0: time.sleep(1000)", "import os\nos.fork()"]
)
def test_noise_does_no_harm(tmp_path: Path, noise: str) -> None:
    """What a module prints, starts, closes or changes: its tools are known all the same."""
    found = learned(tmp_path, f"{TOOL}\n{noise}\n")
    assert found.faults == ()
    assert "add" in found.tools


def test_a_module_that_hangs_is_given_up_with_all_that_it_started(tmp_path: Path) -> None:
    """And what came before it is known."""
    (tmp_path / "first.py").write_text(TOOL)
    (tmp_path / "mine.py").write_text(
        "import os, subprocess, time\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f\"{{os.getpid()}} {{subprocess.Popen(['sleep', '1000']).pid}}\")\n"
        "time.sleep(1000)\n"
    )
    found = learn(("first", "mine", "last"), tmp_path, 4.0)
    assert found.faults == (("mine", "tools module `mine` takes longer than 4 s to import"),)
    assert "add" in found.tools
    for pid in (tmp_path / "pids").read_text().split():
        assert _ended(int(pid))


def _ended(pid: int) -> bool:
    """Tell whether a process has ended, or is about to: killed, and only waiting to be collected."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
    return False


def test_the_projects_own_names_do_not_stand_for_others(tmp_path: Path) -> None:
    """Files called like modules of the standard library, of ours and of our libraries."""
    for name in ("json", "types", "agentloom", "faulthandler", "pydantic", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('mine')\n")
    assert learned(tmp_path, TOOL).faults == ()


def test_too_much_is_not_taken_in(tmp_path: Path) -> None:
    """A description of 9 MB."""
    found = learned(tmp_path, TOOL.replace('"Add two numbers."', '"x" * 9_000_000'))
    assert not found.complete
    assert found.tools == BUILTIN_TOOLS


def test_no_modules_cost_no_process() -> None:
    """And a folder that isn't there is no reason to fail."""
    assert learn((), Path("/nowhere")) == Learned()
    assert not learn(("nope",), Path("/nowhere")).complete


def test_what_a_change_looks_like(tmp_path: Path) -> None:
    """A file that is written, made or removed has another stamp; names that no system takes have one, too."""
    found = learned(tmp_path, TOOL)
    before = stamps(found.files)
    assert stamps(found.files) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(TOOL)
    assert stamps(found.files) != before
    assert stamps(["\0"]) == (None,)


def test_the_run_takes_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of a run imports the module itself, and comes to the same tools."""
    name = f"mine_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text(TOOL)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = learn((name,), tmp_path)
    (own,) = tools_in(name)
    assert own.info == found.tools["add"]
