"""Command lines in a sandbox: one program without a shell, that is listed, with arguments that lead nowhere else.

What an allowed program does by itself can't be known here. So programs that start others need a word more, and every part of an
argument that a program may take for a path has to lie where it may be read; where it may be written, too, unless the program is known only to read.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.errors import ValidationError
from agentloom.tools.addresses import SCHEMES, read_target
from agentloom.tools.policy import Policy, refuse


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


META = _names(
    # What the format names …
    "env sh bash zsh fish ksh dash xargs python node perl ruby php lua awk eval source . exec nc ncat socat ssh "
    # … and their next of kin.
    "ash csh tcsh rbash pwsh powershell cmd busybox toybox gawk mawk nawk tclsh wish expect deno bun pypy irb ghci julia rscript "
    "sudo doas su runuser chroot nsenter unshare setsid nohup nice ionice timeout time stdbuf watch parallel command builtin script "
    "strace ltrace gdb rsh scp sftp telnet netcat docker podman"
)
"""Programs that start other programs, without the number of a version."""

READERS = _names(
    "b2sum base32 base64 basename cat cksum cmp column comm cut date df diff dirname du echo egrep expand expr false fgrep file find "
    "fmt fold grep head hexdump id jq join ls md5sum nl numfmt od paste pathchk pr printf pwd readlink realpath rev rg seq sha1sum "
    "sha224sum sha256sum sha384sum sha512sum sleep sort stat strings sum tac tail test tr tree true tsort uname unexpand wc whoami"
)
"""Programs that write nothing, unless an option of ``WRITING`` or ``TARGETS`` says so."""

CREATORS = _names(
    "cp install ln mkdir mkfifo mknod mktemp mv patch rsync split csplit sponge tar tee touch uniq xxd zip"
)
"""Programs that make files of the names they are given."""

WRITING = {"find": ("-delete", "-fls", "-fprint"), "file": ("-C", "--c"), "date": ("-s", "--s")}
"""The options with which programs that read do write; the beginnings of words, one letter also among others."""

TARGETS = {"sort": ("-o", "--o"), "tree": ("-o",)}
"""The options that name what programs write that else read."""

STARTING = {
    "find": ("-exec", "-ok"),
    "tar": ("-I", "-F", "--to-c", "--checkpoint-a", "--use-c", "--rsh", "--info-s", "--new-v"),
    "sort": ("--co",),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsy"),
    "split": ("--fi",),
}
"""The options with which programs start others."""

_JOINTS = ("$(", "<(", ">(", "|", ";", "&", "`", "\n", "\r", "<", ">")
_URL = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*)://")
# Where a path may begin inside a word: `if=/x`, `--out=/x`, `host:/x`, `@/x`, `a,/x`.
_BEGINNING = re.compile(r"[=:@,+%^\s\"'(\[{]")


def fault_of(command: str, commands: Collection[str], danger: Collection[str]) -> str | None:
    """Return in words why the sandbox refuses a command whatever lies on the disk; None if it doesn't."""
    line = command.strip()
    joint = next((sign for sign in _JOINTS if sign in line), None)
    if joint is not None:
        shown = "a line break" if joint in "\r\n" else "a backtick" if joint == "`" else f"`{joint}`"
        return f"the sandbox refuses commands with {shown}; run one program"
    if "\0" in line:
        return "the sandbox refuses commands with a NUL"
    words = words_of(line)
    if words is None:
        return "the sandbox refuses commands with an open quote; close it"
    if not words or not words[0]:
        return "the sandbox refuses a command without a program"
    name = os.path.basename(words[0])
    if name not in commands:
        return f"the sandbox doesn't allow `{name or words[0]}`; add it to `allowed_commands`"
    if name in danger:
        return None
    if starts_others(name):
        return f"`{name}` starts other programs; the sandbox needs it in `danger_opt_in`, too"
    option = _first_option(words[1:], STARTING.get(name, ()))
    if option is not None:
        return f"`{name}` starts other programs with `{option}`; the sandbox needs it in `danger_opt_in`, too"
    return None


def words_of(line: str) -> list[str] | None:
    """Return the words of a command line as a shell would split them; None if a quote is open."""
    try:
        return shlex.split(line)
    except ValueError:
        return None


def starts_others(name: str) -> bool:
    """Tell whether a program starts other programs: `python3.12` is `python`."""
    return name in META or re.sub(r"[-.\d]+(\.exe)?$", "", name.lower()).removesuffix(".exe") in META


def allowed_program(policy: Policy, command: str, cwd: Path, who: str = "shell_command") -> tuple[str, ...]:
    """Return the program that ``PATH`` finds, and its arguments. Raises ``SandboxViolationError``."""
    fault = fault_of(command, policy.commands, policy.danger)
    if fault is not None:
        raise refuse(who, fault)
    words = words_of(command.strip())
    assert words
    folder = policy.readable(cwd, who)
    words_left = [_without_address(policy, word, who) for word in words[1:]]
    for place in _places(os.path.basename(words[0]), words_left, folder):
        if place.writes:
            policy.writable(place.path, 0, who)
        else:
            policy.readable(place.path, who)
    name = os.path.basename(words[0])
    program = shutil.which(name, path=_searched(policy.environment()["PATH"]))
    if program is None:
        raise refuse(who, f"`{name}` is not found in `PATH`")
    if words[0] != name and os.path.realpath(os.path.join(folder, words[0])) != os.path.realpath(program):
        raise refuse(who, f"`{words[0]}` is not the program that `PATH` finds; write `{name}`")
    return (program, *words[1:])


class _Place(NamedTuple):
    """A path that a program may use."""

    path: str
    writes: bool


class _Part(NamedTuple):
    """What a program may take for a path in a word. ``likely`` is the word itself, or the value of an option or a key."""

    text: str
    likely: bool


def _places(name: str, arguments: list[str], folder: str) -> Iterator[_Place]:
    """Yield what a program may take for paths, absolute."""
    writes = name not in READERS or _first_option(arguments, WRITING.get(name, ())) is not None
    targets = _targets(name, arguments)
    reads_until = _sources(name, arguments)
    starts, climbing = [folder], list[tuple[str, bool]]()
    for at, word in enumerate(arguments):
        written = at in targets or (writes and at >= reads_until and not (name == "dd" and word.startswith("if=")))
        for part in _parts(word):
            text = part.text
            exists = os.path.lexists(os.path.join(folder, text))
            leaves = text.startswith(("/", "~")) or ".." in text.split("/")
            creates = part.likely and (at in targets or name in CREATORS or (name == "dd" and word.startswith("of=")))
            if not (exists or "/" in text or leaves or creates):
                continue
            path = os.path.join(folder, text)
            yield _Place(path, written and (part.likely or exists or leaves))
            if ".." in text.split("/"):
                climbing.append((text, written))
            elif os.path.isdir(path):
                starts.append(path)
    # Options such as `-C` change the folder that the others start from.
    yield from (_Place(os.path.join(start, text), written) for start in starts[1:] for text, written in climbing)


def _targets(name: str, arguments: list[str]) -> set[int]:
    """Return the indices of the options that name what is written, and of the words after those without a value of their own."""
    found = set()
    for at, word in enumerate(arguments):
        for option in TARGETS.get(name, ()):
            if _first_option([word], (option,)) is not None:
                found |= (
                    {at, at + 1} if word.endswith(option[1]) or (word.startswith("--") and "=" not in word) else {at}
                )
    return found


def _sources(name: str, arguments: list[str]) -> int:
    """Return the index up to which arguments are only read: `cp` reads all but the last, unless an option names the target."""
    if name != "cp" or _first_option(arguments, ("-t", "--t")) is not None:
        return 0
    return max((at for at, word in enumerate(arguments) if not word.startswith("-")), default=0)


def _parts(word: str) -> Iterator[_Part]:
    """Yield what may be a path in a word, and in what begins anywhere inside it."""
    keyed = re.match(r"[A-Za-z0-9_.-]+=", word)
    found = [_Part(word, not keyed)] if not word.startswith("-") else []
    if word.startswith("-") and not word.startswith("--"):
        found.append(_Part(word[2:], "/" in word))
    if word.startswith("-"):
        before = word.partition("=")[0]
        # `-o/x`, `-no../x`: letters before the value may be options, too.
        found.extend(_Part(word[before.index(sign) :], False) for sign in "/." if sign in before)
    for mark in _BEGINNING.finditer(word):
        found.append(_Part(word[mark.end() :], keyed is not None and mark.end() == keyed.end()))
    return (part for part in found if part.text)


def _without_address(policy: Policy, word: str, who: str) -> str:
    """Return a word without an address in it. Raises ``SandboxViolationError`` for one that `http_request` wouldn't get either."""
    found = _URL.search(word)
    if found is None:
        return word
    scheme = found[1].lower()
    if scheme not in policy.schemes:
        raise refuse(who, f"`{scheme}` is not among the `allowed_schemes`")
    if scheme not in SCHEMES:
        return word
    try:
        policy.reach(who).look_at(read_target(word[found.start(1) :]))
    except ValidationError as error:
        raise refuse(who, str(error)) from None
    return word[: found.start(1)]


def _first_option(words: list[str], options: tuple[str, ...]) -> str | None:
    """Return the first word that is one of the options, written in any way that programs take."""
    for word in words:
        for option in options:
            if word.startswith(option):
                return word.partition("=")[0]
            cluster = re.match(r"-([A-Za-z0-9]+)", word)
            if len(option) == 2 and cluster and option[1] in cluster[1]:
                return option
    return None


def _searched(path: str) -> str:
    """Return the folders of `PATH` that don't depend on where a command runs."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))
