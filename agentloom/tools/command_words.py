"""What a command line in a sandbox may say, whatever lies on the disk: one program, without a shell, that is listed.

The checks of files say the same as a run. What an allowed program does by itself can't be known here, so programs that start others need
a word more.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from itertools import takewhile


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


META = names(
    # What the format names …
    "env sh bash zsh fish ksh dash xargs python node perl ruby php lua awk eval source . exec nc ncat socat ssh "
    # … and their next of kin.
    "ash csh tcsh rbash pwsh powershell cmd busybox toybox gawk mawk nawk tclsh wish expect deno bun pypy irb ghci julia rscript "
    "sudo doas su runuser chroot nsenter unshare setsid nohup nice ionice timeout time stdbuf watch parallel command builtin script "
    "strace ltrace gdb rsh scp sftp telnet netcat docker podman"
)
"""Programs that start other programs, without the number of a version."""

STARTING = {
    "find": ("-exec", "-ok"),
    "tar": ("-I", "-F", "--to-c", "--checkpoint-a", "--use-c", "--rsh", "--info-s", "--new-v"),
    "sort": ("--co",),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsy"),
    "split": ("--fi",),
    "git": ("--upload-pack", "--receive-pack", "--extcmd", "--open-files", "--ext-diff"),
}
"""The options with which programs start others."""

LEADING = {"git": ("-c", "--config-env", "--exec-path")}
"""The same, of options that only count before the first word that is none."""

_JOINTS = ("$(", "<(", ">(", "|", ";", "&", "`", "\n", "\r", "<", ">")


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
    leading = list(takewhile(lambda word: word.startswith("-"), words[1:]))
    option = first_option(words[1:], STARTING.get(name, ())) or first_option(leading, LEADING.get(name, ()))
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


def first_option(words: Sequence[str], options: tuple[str, ...]) -> str | None:
    """Return the first word that is one of the options, written in any way that programs take."""
    for word in words:
        for option in options:
            if word.startswith(option):
                return word.partition("=")[0]
            cluster = re.match(r"-([A-Za-z0-9]+)", word)
            if len(option) == 2 and cluster and option[1] in cluster[1]:
                return option
    return None
