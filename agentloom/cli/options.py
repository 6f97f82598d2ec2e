"""Options that several commands share."""

from __future__ import annotations

import click

LITE = click.option(
    "--lite", is_flag=True, expose_value=False, help="Without observability; so far nothing is exported anyway."
)
"""For every command that runs workflows."""
