"""Standard output that belongs to a machine: nobody else writes into it while a run goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO


@contextmanager
def kept_for_machines() -> Iterator[TextIO]:
    """Yield standard output; what tools print meanwhile goes to standard error, and so does what programs print that they start."""
    real = sys.stdout
    try:
        real.flush()
        place, other = real.fileno(), sys.stderr.fileno()
        kept = os.dup(place)
    except (OSError, ValueError, AttributeError):  # somebody's own stream, which has no descriptor
        with redirect_stdout(sys.stderr):
            yield real
        return
    mine = open(kept, "w", encoding=real.encoding, errors=real.errors)  # noqa: SIM115 - closed below, though the reader has gone
    try:
        os.dup2(other, place)
        with redirect_stdout(sys.stderr):
            yield mine
    finally:
        with suppress(OSError):  # the reader has gone, as was told where it was noticed
            mine.flush()
        os.dup2(kept, place)
        with suppress(OSError):
            mine.close()
