"""The page that lists what waits: plain HTML without scripts, everything from elsewhere escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape

from agentloom.core.keeping.waiting import Paused

STYLE = """
:root { color-scheme: light dark; --line: #d5d8dd; --soft: #5c6470; --card: #fff; --back: #f4f5f7; --text: #1b1f24;
  --yes: #146c43; --no: #b02a37; --note: #e7f1ff; }
@media (prefers-color-scheme: dark) { :root { --line: #3a404a; --soft: #a2abb8; --card: #1e2228; --back: #15181c;
  --text: #e6e9ed; --yes: #1c7c4d; --no: #c0392b; --note: #1d2f47; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
article, .box { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0 .75rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 16rem; overflow: auto; margin: .25rem 0 .75rem;
  padding: .5rem; border: 1px solid var(--line); border-radius: .25rem; font-size: .875rem; }
summary { cursor: pointer; } details { margin: 0 0 .75rem; }
.buttons { display: flex; gap: .5rem; flex-wrap: wrap; }
button { font: inherit; padding: .4rem 1rem; border: 1px solid transparent; border-radius: .375rem; color: #fff; cursor: pointer; }
button.yes { background: var(--yes); } button.no { background: var(--no); }
button:focus-visible, summary:focus-visible, a:focus-visible, input:focus-visible { outline: 3px solid #3b82f6; outline-offset: 2px; }
.note { background: var(--note); } .soft { color: var(--soft); }
input { font: inherit; padding: .4rem; border: 1px solid var(--line); border-radius: .375rem; width: 100%; margin: .25rem 0 .75rem;
  background: var(--card); color: var(--text); }
"""

POLICY = (
    "default-src 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: our one style, our own forms, and nothing else."""

MOST_SHOWN = 200


def listing(runs: Sequence[Paused], csrf: str, note: str | None = None, now: datetime | None = None) -> str:
    """Return the page of the runs that wait."""
    now = now or datetime.now(UTC)
    count = "Nothing waits" if not runs else "1 run waits" if len(runs) == 1 else f"{len(runs)} runs wait"
    said = "" if note is None else f'<p class="box note" role="status">{escape(note)}</p>'
    cards = "".join(_card(run, csrf, now) for run in runs[:MOST_SHOWN])
    more = f'<p class="soft">and {len(runs) - MOST_SHOWN} more</p>' if len(runs) > MOST_SHOWN else ""
    return _whole(f"{count} for approval", f'{said}{cards}{more}<p><a href="/">Refresh</a></p>')


def entrance(note: str | None = None) -> str:
    """Return the page that asks for the token."""
    said = "" if note is None else f'<p role="alert">{escape(note)}</p>'
    return _whole(
        "Approvals",
        f'<form class="box" method="post" action="/login">{said}<label for="token">Token</label>'
        '<input name="username" value="approvals" autocomplete="username" hidden>'
        '<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>'
        '<button class="yes">Sign in</button></form>',
    )


def message(title: str, text: str) -> str:
    """Return a page that says one thing."""
    return _whole(title, f'<p class="box note" role="alert">{escape(text)}</p><p><a href="/">Back to the list</a></p>')


def _card(run: Paused, csrf: str, now: datetime) -> str:
    rows = [("Gate", run.step_id), ("Run", run.run_id)]
    if run.since is not None:
        rows.append(("Waits since", f"{run.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({_span(run.since, now)})"))
    if run.due is not None:
        rows.append(("Time is over", f"{run.due.astimezone(UTC):%Y-%m-%d %H:%M} UTC, it then {run.then}"))
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    finished = "".join(
        f"<strong>{escape(name)}</strong><pre>{escape(str(output))}</pre>" for name, output in run.finished
    )
    details = f"<details><summary>What its steps gave so far</summary>{finished}</details>" if finished else ""
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in (
            ("csrf", csrf),
            ("run_id", run.run_id),
            ("step_id", run.step_id),
            ("updated_at", run.updated_at),
        )
    )
    about = escape(f"{run.workflow_name}, run {run.run_id}")
    return (
        f"<article><h2>{escape(run.workflow_name)}</h2><dl>{facts}</dl>{details}"
        f'<form class="buttons" method="post" action="/decide">{hidden}'
        f'<button class="yes" name="decision" value="approved" aria-label="Approve {about}">Approve</button>'
        f'<button class="no" name="decision" value="rejected" aria-label="Reject {about}">Reject</button></form></article>'
    )


def _span(since: datetime, now: datetime) -> str:
    minutes = max(0, int((now - since).total_seconds() // 60))
    if minutes < 1:
        return "just now"
    for size, word in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            count = minutes // size
            return f"{count} {word}{'' if count == 1 else 's'}"
    return ""


def _whole(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
