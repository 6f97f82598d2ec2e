"""Command lines in a sandbox: the program that `PATH` finds, with arguments that lead nowhere else.

Every part of an argument that a program may take for a path has to lie where it may be read; where it may be written, too, unless the program
is known only to read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.errors import ValidationError
from agentloom.tools.addresses import SCHEMES, read_target
from agentloom.tools.command_words import fault_of, first_option, names, words_of
from agentloom.tools.policy import Policy, refuse

READERS = names(
    "b2sum base32 base64 basename cat cksum cmp column comm cut date df diff dirname du echo egrep expand expr false fgrep file find "
    "fmt fold grep head hexdump id jq join ls md5sum nl numfmt od paste pathchk pr printf pwd readlink realpath rev rg seq sha1sum "
    "sha224sum sha256sum sha384sum sha512sum sleep sort stat strings sum tac tail test tr tree true tsort uname unexpand wc whoami"
)
"""Programs that write nothing, unless an option of ``WRITING`` or ``TARGETS`` says so."""

CREATORS = names(
    "cp install ln mkdir mkfifo mknod mktemp mv patch rsync split csplit sponge tar tee touch uniq xxd zip"
)
"""Programs that make files of the names they are given."""

WRITING = {"find": ("-delete", "-fls", "-fprint"), "file": ("-C", "--c"), "date": ("-s", "--s")}
"""The options with which programs that read do write; the beginnings of words, one letter also among others."""

TARGETS = {"sort": ("-o", "--o"), "tree": ("-o",)}
"""The options that name what programs write that else read."""

_URL = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*)://")
# Where a path may begin inside a word: `if=/x`, `--out=/x`, `host:/x`, `@/x`, `a,/x`.
_BEGINNING = re.compile(r"[=:@,+%^\s\"'(\[{]")


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
            policy.writable(place.path, 0, who, place.text)
        else:
            policy.readable(place.path, who, place.text)
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
    text: str


class _Part(NamedTuple):
    """What a program may take for a path in a word. ``likely`` is the word itself, or the value of an option or a key."""

    text: str
    likely: bool


def _places(name: str, arguments: list[str], folder: str) -> Iterator[_Place]:
    """Yield what a program may take for paths, absolute."""
    writes = name not in READERS or first_option(arguments, WRITING.get(name, ())) is not None
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
            yield _Place(path, written and (part.likely or exists or leaves), text)
            if ".." in text.split("/"):
                climbing.append((text, written))
            elif os.path.isdir(path):
                starts.append(path)
            elif name == "ln":  # what a link says starts at the link
                starts.append(os.path.dirname(path))
    # Options such as `-C` change the folder that the others start from.
    yield from (_Place(os.path.join(start, text), written, text) for start in starts[1:] for text, written in climbing)


def _targets(name: str, arguments: list[str]) -> set[int]:
    """Return the indices of the options that name what is written, and of the words after those without a value of their own."""
    found = set()
    for at, word in enumerate(arguments):
        for option in TARGETS.get(name, ()):
            if first_option([word], (option,)) is not None:
                found |= (
                    {at, at + 1} if word.endswith(option[1]) or (word.startswith("--") and "=" not in word) else {at}
                )
    return found


def _sources(name: str, arguments: list[str]) -> int:
    """Return the index up to which arguments are only read: `cp` reads all but the last, unless an option names the target."""
    if name != "cp" or first_option(arguments, ("-t", "--t")) is not None:
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


def _searched(path: str) -> str:
    """Return the folders of `PATH` that don't depend on where a command runs."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))
