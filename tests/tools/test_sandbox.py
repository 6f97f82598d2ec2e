"""The sandbox (SB-1 to SB-6): what the built-in tools may touch, and how a refusal looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import SandboxViolationError
from agentloom.model.config import Sandbox
from agentloom.tools.builtin import register_builtins
from agentloom.tools.commands import allowed_program
from agentloom.tools.policy import Policy, enforced, narrowed, policy_of
from agentloom.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio


def registry(folder: Path, **rules: Any) -> ToolRegistry:
    """The built-in tools under a sandbox whose relative paths start at a folder."""
    made = ToolRegistry()
    register_builtins(made, Sandbox(enabled=True, **rules), folder=folder)
    return made


async def refusal(tools: ToolRegistry, name: str, arguments: Mapping[str, Any]) -> str:
    """What the sandbox says to a call, without its beginning."""
    with pytest.raises(SandboxViolationError) as caught:
        await tools.call(name, arguments)
    start = f"Sandbox violation ({name}): "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


async def run(tools: ToolRegistry, command: str, **more: Any) -> Any:
    """What a command gives."""
    return await tools.call("shell_command", {"command": command, **more})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project: `in` to read, `out` to write, `secret.txt` for nobody."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a.txt").write_text("hello\n")
    (tmp_path / "secret.txt").write_text("secret\n")
    return tmp_path


TREES = {"readable_paths": ["in"], "writable_paths": ["out"]}


async def test_without_a_sandbox_nothing_is_checked(place: Path) -> None:
    """SB-1."""
    assert policy_of(Sandbox(enabled=False, allowed_commands=["ls"])) is None
    assert policy_of(None) is None


async def test_with_empty_lists_nothing_is_allowed(place: Path) -> None:
    """SB-1: no command, no file to read, none to write."""
    tools = registry(place)
    assert await refusal(tools, "shell_command", {"command": "echo hi"}) == (
        "the sandbox doesn't allow `echo`; add it to `allowed_commands`"
    )
    assert await refusal(tools, "file_read", {"path": "in/a.txt"}) == (
        "`in/a.txt` may not be read; add its folder to `readable_paths`"
    )
    said = await refusal(tools, "file_write", {"path": "out/b/c.txt", "content": "x"})
    assert said == "`out/b/c.txt` may not be written; add its folder to `writable_paths`"
    assert not (place / "out" / "b").exists()


async def test_files(place: Path) -> None:
    """SB-3: each tree for its own; a file alone is a tree; `..` is followed."""
    tools = registry(place, **TREES, allowed_paths=["both.txt"])
    assert await tools.call("file_read", {"path": "in/a.txt"}) == "hello\n"
    assert await tools.call("file_read", {"path": "out/../in/./a.txt"}) == "hello\n"
    await tools.call("file_write", {"path": "out/deep/er/b.txt", "content": "long"})
    await tools.call("file_write", {"path": "out/deep/er/b.txt", "content": "x"})
    assert (place / "out/deep/er/b.txt").read_text() == "x"
    await tools.call("file_write", {"path": "both.txt", "content": "x"})
    assert await tools.call("file_read", {"path": "both.txt"}) == "x"
    for path in ("secret.txt", "in/../secret.txt", "/etc/passwd", "inn/a.txt", "out/deep/er/b.txt", "."):
        assert "may not be read" in await refusal(tools, "file_read", {"path": path})
    for path in ("in/a.txt", "in/new.txt", "out/../x", "outer", "/tmp/x"):
        assert "may not be written" in await refusal(tools, "file_write", {"path": path, "content": ""})


async def test_links_count_as_what_they_point_to(place: Path) -> None:
    """SB-3: to a file, to a folder, through several links, and to nothing yet."""
    (place / "in" / "file").symlink_to(place / "secret.txt")
    (place / "in" / "folder").symlink_to(place)
    (place / "in" / "second").symlink_to("file")
    (place / "in" / "fine").symlink_to("a.txt")
    (place / "out" / "new").symlink_to(place / "new.txt")
    (place / "out" / "up").symlink_to("..")
    tools = registry(place, **TREES)
    assert await tools.call("file_read", {"path": "in/fine"}) == "hello\n"
    for path in ("in/file", "in/folder/secret.txt", "in/second"):
        assert "may not be read" in await refusal(tools, "file_read", {"path": path})
    for path in ("out/new", "out/up/new.txt", "out/up/in/a.txt"):
        assert "may not be written" in await refusal(tools, "file_write", {"path": path, "content": "x"})
    assert not (place / "new.txt").exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("in/" + "x" * 300, "it is too long"),
        ("in/" + "x/" * 3000, "it is too long"),
        ("in/loop", "its links lead in a circle"),
        ("in/a.txt/x", "not a directory"),
        ("in/\ud800", "it is no text"),
        ("in/\0", "it holds a NUL"),
    ],
)
def test_paths_that_cannot_be_resolved(place: Path, path: str, why: str) -> None:
    """SB-3: refused, whatever may be read."""
    (place / "in" / "loop").symlink_to("loop")
    policy = policy_of(Sandbox(enabled=True, allowed_paths=["/"]))
    assert policy is not None
    with pytest.raises(SandboxViolationError) as caught:
        policy.readable(f"{place}/{path}")
    assert str(caught.value).endswith(f"can't be resolved: {why}")


def test_a_path_that_is_no_text_is_refused() -> None:
    """SB-3: whoever asks."""
    odd: Any = 7
    with pytest.raises(
        SandboxViolationError, match=r"^Sandbox violation \(attachment\): `int` can't be resolved: it is"
    ):
        Policy(reads=("/",)).readable(odd, "attachment")


def test_a_link_that_appears_between_look_and_opening(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: a folder that became a link after it was resolved is not followed, for reading or writing."""
    from agentloom.tools import policy as module

    policy = policy_of(Sandbox(enabled=True, allowed_paths=["out"]), place)
    assert policy is not None
    (place / "out" / "d").mkdir()
    (place / "out" / "d" / "secret.txt").write_text("fine")
    real = module.real_path

    def swap(*arguments: Any) -> str:
        found = real(*arguments)
        (place / "out" / "d").rename(place / "out" / "old")
        (place / "out" / "d").symlink_to(place)
        return found

    monkeypatch.setattr(module, "real_path", swap)
    with pytest.raises(SandboxViolationError, match="changed while it was opened"):
        policy.open_to_read(place / "out" / "d" / "secret.txt")
    (place / "out" / "d").unlink()
    (place / "out" / "old").rename(place / "out" / "d")
    with pytest.raises(SandboxViolationError, match="changed while it was opened"):
        policy.open_to_write(place / "out" / "d" / "secret.txt", 1)
    assert (place / "secret.txt").read_text() == "secret\n"


async def test_how_much_may_be_written(place: Path) -> None:
    """SB-3: in bytes, before the file is touched."""
    tools = registry(place, **TREES, max_write_bytes=3)
    await tools.call("file_write", {"path": "out/x", "content": "abc"})
    said = await refusal(tools, "file_write", {"path": "out/x", "content": "öö"})
    assert said == "4 bytes are more than `max_write_bytes` (3) allows"
    assert (place / "out/x").read_text() == "abc"


async def test_only_regular_files_are_written(place: Path) -> None:
    """A pipe that nobody reads would block for ever."""
    os.mkfifo(place / "out" / "pipe")
    with pytest.raises(OSError, match=r"can't be written|not a regular file"):
        await registry(place, **TREES).call("file_write", {"path": "out/pipe", "content": "x"})


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
async def test_processes_are_in_no_folder(place: Path) -> None:
    """SB-6: the keys of this process can't be read, whatever may be."""
    tools = registry(place, readable_paths=["/"], allowed_commands=["cat"])
    assert await tools.call("file_read", {"path": "/etc/hostname"})
    assert "may not be read" in await refusal(tools, "file_read", {"path": "/proc/self/environ"})
    assert "may not be read" in await refusal(tools, "shell_command", {"command": f"cat /proc/{os.getpid()}/environ"})


@pytest.mark.parametrize(
    "command",
    [
        "cat in/a.txt | wc",
        "cat in/a.txt; id",
        "cat in/a.txt & id",
        "cat in/a.txt && id",
        "cat `id`",
        "cat in/a.txt\nid",
        "cat in/a.txt\rid",
        "cat $(id)",
        "cat <(id)",
        "cat >(id)",
        "cat < in/a.txt",
        "cat in/a.txt > out/x",
        'cat "in/a.txt',
        "",
        "''",
        "cat\0",
        "CAT=x cat in/a.txt",
    ],
)
async def test_a_command_is_one_program(place: Path, command: str) -> None:
    """SB-2."""
    assert await refusal(registry(place, **TREES, allowed_commands=["cat"]), "shell_command", {"command": command})


async def test_nothing_is_expanded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: the words reach the program as they are."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    tools = registry(place, allowed_paths=["."], allowed_commands=["echo", "printenv"])
    done = await run(tools, "echo $OPENAI_API_KEY ~ *.txt {a,b} 'two words' \\x")
    assert done["stdout"] == "$OPENAI_API_KEY ~ *.txt {a,b} two words x\n"
    assert "sk-secret" not in (await run(tools, "printenv"))["stdout"]
    names = {line.partition("=")[0] for line in (await run(tools, "printenv"))["stdout"].splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR"}


async def test_case_what_comparable_engines_let_through(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the sandbox on: a variable in a path, an option with a path, a program of the same name elsewhere, loopback, a key."""
    monkeypatch.setenv("HOME", str(place))
    (place / ".bashrc").write_text("secret")
    (place / "out" / "echo").write_text("#!/bin/sh\necho hijacked\n")
    (place / "out" / "echo").chmod(0o755)
    tools = registry(place / "in", allowed_paths=[str(place / "in")], allowed_commands=["cat", "sort", "echo"])
    done = await run(tools, "cat $HOME/.bashrc")
    assert (done["returncode"], done["stdout"]) == (1, "")
    assert "may not be" in await refusal(tools, "shell_command", {"command": f"sort -o{place}/out/x a.txt"})
    elsewhere = f"{place}/out/echo hi"
    assert "is not the program that `PATH` finds; write `echo`" in await refusal(
        tools, "shell_command", {"command": elsewhere}
    )
    assert "is an internal address" in await refusal(tools, "http_request", {"url": "http://127.0.0.1:1/"})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert (await run(tools, "echo $OPENAI_API_KEY"))["stdout"] == "$OPENAI_API_KEY\n"


@pytest.mark.parametrize(
    "command",
    [
        "cat secret.txt",
        "cat ./secret.txt",
        "cat in/../secret.txt",
        "cat /etc/passwd",
        "cat ..",
        "ls ../..",
        "cat in/file",
        "cat link",
        "sort -o/elsewhere in/a.txt",
        "sort -oin/a.txt in/a.txt",
        "sort -no../x in/a.txt",
        "sort --output=/elsewhere in/a.txt",
        "sort --outp /elsewhere in/a.txt",
        "sort --files0-from=secret.txt",
        "sort --compress-program=id in/a.txt",
        "dd if=secret.txt of=out/x",
        "dd if=in/a.txt of=in/x",
        "dd if=in/a.txt of=new",
        "cp in/a.txt in/b.txt",
        "cp in/a.txt new",
        "cp secret.txt out/x",
        "cp -t in out/x",
        "cp out/x --target-directory=in",
        "mv in/a.txt out/a.txt",
        "touch new",
        "touch in/new",
        "mkdir -p in/x",
        "tee in/x",
        "ln -s /etc/passwd out/p",
        "ln in/a.txt out/p",
        "ln -s ../.. out/deep",
        "ln -s ../secret.txt out/new",
        "git -c core.pager=id log",
        "git -p -c alias.x=!id x",
        "git --exec-path=out log",
        "git fetch --upload-pack=id out",
        "tar -C/etc -cf out/x.tar passwd",
        "tar -C in -cf out/x.tar ../secret.txt",
        "tar -C / -cf out/x.tar etc",
        "find in -exec cat {} +",
        "find in -delete",
        "find in -fprint out/../x",
        "cat @/etc/passwd",
        "tool --config=/etc/passwd",
        "tool a:/etc/passwd",
        "tool file:/etc/passwd",
        "tool file:///etc/passwd",
        "tool http://127.0.0.1/",
        "tool --url=http://localhost:8080/x",
        "tool in/a.txt",
        "sh -c id",
        "python3 -c 1",
        "python3.12 -c 1",
        "env",
        "sudo id",
    ],
)
async def test_commands_that_lead_elsewhere(place: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-2, SB-6: whatever a program may take for a path is looked at; programs that start others need a word more."""
    (place / "in" / "file").symlink_to(place / "secret.txt")
    (place / "link").symlink_to("/etc/passwd")
    names = [
        "cat",
        "git",
        "ls",
        "sort",
        "dd",
        "cp",
        "mv",
        "touch",
        "mkdir",
        "tee",
        "ln",
        "tar",
        "find",
        "tool",
        "sh",
        "python3",
        "python3.12",
        "env",
        "sudo",
    ]
    # The folder itself may be listed and run in, what lies beside `in` and `out` may not be read.
    policy = Policy(
        commands=frozenset(names),
        reads=(str(place / "in"), str(place / "out")),
        writes=(str(place / "out"),),
    )
    real = Policy.readable

    def with_folder(self: Policy, path: str | Path, who: str = "file_read", shown: str | None = None) -> str:
        return str(path) if Path(path) == place else real(self, path, who, shown)

    monkeypatch.setattr(Policy, "readable", with_folder)
    with pytest.raises(SandboxViolationError, match=r"^Sandbox violation \(shell_command\): ") as caught:
        allowed_program(policy, command, place)
    assert "is not found" not in str(caught.value)


async def test_commands_that_stay_inside(place: Path) -> None:
    """SB-2: what is allowed works, in any way to write it."""
    tools = registry(
        place,
        readable_paths=["."],
        writable_paths=["out"],
        allowed_commands=[
            "cat",
            "ls",
            "sort",
            "cp",
            "dd",
            "grep",
            "head",
            "mkdir",
            "touch",
            "rm",
            "find",
            "echo",
            "python3",
            "wc",
            "tar",
        ],
        danger_opt_in=["python3"],
    )
    for command, printed in (
        ("cat in/a.txt", "hello\n"),
        (" cat  'in/a.txt' \n", "hello\n"),
        (f"cat {place}/in/a.txt", "hello\n"),
        ("head -n1 in/a.txt", "hello\n"),
        ("grep -c hello in/a.txt", "1\n"),
        ("grep -e h.llo -- in/a.txt", "hello\n"),
        ("sort -o out/s in/a.txt", ""),
        ("sort --output=out/s in/a.txt", ""),
        ("cp in/a.txt out/b.txt", ""),
        ("dd if=in/a.txt of=out/c.txt bs=1M status=none", ""),
        ("mkdir -p -m755 out/d/e", ""),
        ("touch out/d/f", ""),
        ("rm -r out/d", ""),
        ("tar -cf out/x.tar out/b.txt", ""),
        ("find in -name a.txt", "in/a.txt\n"),
        ("python3 -c print(1)", "1\n"),
        ("echo a=b c", "a=b c\n"),
    ):
        done = await run(tools, command)
        assert (done["returncode"], done["stdout"]) == (0, printed), (command, done)
    assert (await run(tools, "cat a.txt", cwd="in"))["stdout"] == "hello\n"


async def test_a_command_runs_only_where_it_may_read(place: Path) -> None:
    """SB-2: `cwd`, given or not."""
    tools = registry(place, **TREES, allowed_commands=["ls"])
    assert "may not be read" in await refusal(tools, "shell_command", {"command": "ls"})
    assert "may not be read" in await refusal(tools, "shell_command", {"command": "ls", "cwd": ".."})
    assert (await run(tools, "ls", cwd="in"))["stdout"] == "a.txt\n"


async def test_a_program_is_the_one_that_path_finds(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: not one in the folder where the command runs, though `PATH` says so."""
    (place / "own").write_text("#!/bin/sh\necho hijacked\n")
    (place / "own").chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    tools = registry(place, allowed_paths=["."], allowed_commands=["own", "cat"])
    assert await refusal(tools, "shell_command", {"command": "own"}) == "`own` is not found in `PATH`"
    assert "is not found in `PATH`" in await refusal(tools, "shell_command", {"command": "./own"})
    assert (await run(tools, "/bin/cat in/a.txt"))["stdout"] == "hello\n"


async def test_a_program_is_run_without_a_shell_of_its_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: a text without `#!` is nothing to start, and its environment is the small one, without what a shell adds."""
    (place / "bin").mkdir()
    for name, text in (("plain", "echo hijacked\n"), ("speak", "#!/bin/sh\necho on\n")):
        (place / "bin" / name).write_text(text)
        (place / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SHLVL", "3")
    tools = registry(place, allowed_paths=["."], allowed_commands=["plain", "speak", "printenv"])
    with pytest.raises(OSError, match="the command can't be started: Exec format error"):
        await run(tools, "plain")
    assert (await run(tools, "speak"))["stdout"] == "on\n"
    names = {line.partition("=")[0] for line in (await run(tools, "printenv"))["stdout"].splitlines()}
    assert names - {"_"} == {"PATH", "HOME", "LANG", "TMPDIR"}  # a shell that is bash adds `_`


async def test_the_workflow_and_the_program_must_both_agree(place: Path) -> None:
    """A registry with a sandbox of its own, used by a workflow with another: what both allow is allowed."""
    tools = registry(place, readable_paths=["."], writable_paths=["out"], allowed_commands=["cat", "ls"])
    inner = policy_of(
        Sandbox(enabled=True, readable_paths=["in"], writable_paths=["."], allowed_commands=["cat"]), place
    )
    with enforced(inner):
        assert await tools.call("file_read", {"path": "in/a.txt"}) == "hello\n"
        assert "may not be read" in await refusal(tools, "file_read", {"path": "secret.txt"})
        assert "may not be written" in await refusal(tools, "file_write", {"path": "in/x", "content": ""})
        await tools.call("file_write", {"path": "out/x", "content": ""})
        assert "doesn't allow `ls`" in await refusal(tools, "shell_command", {"command": "ls"})
    assert await tools.call("file_read", {"path": "secret.txt"}) == "secret\n"


def test_what_two_policies_allow_together() -> None:
    """The network, hosts, trusted hosts and sizes: the narrower one."""
    one = Policy(domains=("a", "b"), trusted=("a", "b"), max_write_bytes=5, schemes=("https",))
    two = Policy(domains=("b", "c"), trusted=("b", "c"), max_write_bytes=None)
    both = narrowed(one, two)
    assert both is not None
    assert (both.network, both.domains, both.trusted, both.schemes) == (True, ("b",), ("b",), ("https",))
    assert both.max_write_bytes == 5
    apart = narrowed(Policy(domains=("a",)), Policy(domains=("b",)))
    assert apart is not None
    assert not apart.network
    listed = narrowed(Policy(domains=("a",), trusted=("a",)), Policy())
    assert listed is not None
    assert (listed.network, listed.domains, listed.trusted) == (True, ("a",), ())
    assert narrowed(None, one) is one
    assert narrowed(one, None) is one
