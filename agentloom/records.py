"""Plain data whose class costs little to make: most calls of the program last no longer than its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(*, slots: bool = True, kw_only: bool = False, repr: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a dataclass that the type checker holds to be frozen, and that is compared by identity.

    ``@dataclass(frozen=True, slots=True)`` writes and compiles six methods, which takes 0.8 ms for each class; this one only
    ``__init__``, 0.25 ms. Values that are compared are named tuples (0.15 ms). ``repr`` is for what users of the Python API meet.
    """
    return dataclass(eq=False, match_args=False, slots=slots, kw_only=kw_only, repr=repr)
