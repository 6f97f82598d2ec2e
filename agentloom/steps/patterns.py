"""Regular expressions that a text must not match, looked for within a time: some patterns take years over a text made for them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence

from anyio import to_thread

from agentloom.errors import StepError

WITHIN = 5.0
"""How long all patterns of an agent may take, in seconds; measured by the system's clock, since nothing of ours runs meanwhile."""

# A pattern without repetitions looks at each place of the text once. Others are searched by a process of their own: `re` holds the
# interpreter while it searches, so no thread could stop it.
_REPEATS = re.compile(r"[*+{?](?!i\))|\(\?[^i)]|\\[1-9]")
# It ends by itself when we are gone and can't end it; a clock of the system's own, since Python's handlers wait for the search too.
_SEARCH = (
    "import json,re,signal,sys; getattr(signal,'alarm',int)(int(sys.argv[1])); patterns,text=json.load(sys.stdin); "
    "print(next((at for at,one in enumerate(patterns) if re.search(one,text)),-1))"
)


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise ``StepError``, permanent, for a pattern that is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise StepError(f"`forbidden_patterns`: `{pattern[:60]}` is no regular expression: {error}") from error


async def first_match(patterns: Sequence[str], text: str) -> str | None:
    """Return the first pattern that matches somewhere in a text. Raises ``StepError``, permanent, for patterns that can't be used."""
    check_patterns(patterns)
    slow: list[str] = []
    for pattern in patterns:
        if _REPEATS.search(pattern):
            slow.append(pattern)
        elif re.search(pattern, text):
            return pattern
    if not slow:
        return None
    at = await to_thread.run_sync(_search, slow, text, abandon_on_cancel=True)
    return None if at < 0 else slow[at]


def _search(patterns: Sequence[str], text: str) -> int:
    import subprocess  # for few agents

    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SEARCH, str(int(WITHIN) + 1)],
            input=json.dumps([patterns, text]).encode(),
            capture_output=True,
            timeout=WITHIN,
            check=True,
        )
        return int(done.stdout)
    except subprocess.TimeoutExpired:
        raise StepError(
            f"`forbidden_patterns` can't be looked for: they take longer than {WITHIN:g} s; simplify them"
        ) from None
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise StepError(f"`forbidden_patterns` can't be looked for: {error}") from error
