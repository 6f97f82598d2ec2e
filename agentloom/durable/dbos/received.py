"""JSON of the database's: what comes out is looked at before anything is done with it, whoever can write there may have written anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dbos import _core
from dbos._serialization import DBOSPortableJSONSerializer, DefaultSerializer, Serializer

from agentloom.checkpointing.base import CheckpointData, now
from agentloom.checkpointing.files import is_run_id
from agentloom.core.keeping.runs import INTERRUPTED, seed_of
from agentloom.core.plain import plain
from agentloom.durable.dbos.feed import recorded_of
from agentloom.durable.dbos.orders import INPUT_VERSION, run_of
from agentloom.durable.recorded import Recorded
from agentloom.errors import AgentLoomError, WorkflowError

T = TypeVar("T")

_FIELDS: Mapping[str, tuple[type, ...]] = {
    "run_id": (str,),
    "definition": (dict,),
    "source": (str, type(None)),
    "state": (dict,),
    "until": (str, type(None)),
    "seed": (dict, type(None)),
    "decisions": (dict,),
    "lines": (list,),
}
_DAMAGE = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""What reading raises for data that aren't what they should be."""


def read_json_only() -> None:
    """Have DBOS refuse pickles: it reads them wherever a row says that it is one, and a pickle is a program."""

    def refuse(_: DefaultSerializer, serialized_data: str) -> Any:
        raise TypeError("it is a pickle, which isn't read: only JSON is")

    DefaultSerializer.deserialize = refuse  # type: ignore[method-assign, assignment]
    persisted = _core._serialize_exception_for_persistence
    known = (DefaultSerializer().name(), DBOSPortableJSONSerializer().name())

    def persist(error: Exception, serialization: str | None, serializer: Serializer) -> str:
        # Of a row that names another form, not even the error could be written down: it would be tried again and again.
        return persisted(error, serialization if serialization in known else known[1], serializer)

    _core._serialize_exception_for_persistence = persist


def write_every_text() -> None:
    """Have DBOS write half of a surrogate pair, which a reply may hold that was cut off, as `\\udc80`: it is no UTF-8, but it is JSON."""
    written = DBOSPortableJSONSerializer.serialize

    def serialize(self: DBOSPortableJSONSerializer, value: Any) -> str:
        return written(self, value).encode("utf-8", "backslashreplace").decode("utf-8")

    DBOSPortableJSONSerializer.serialize = serialize  # type: ignore[method-assign]


def order_of(value: object, segment: str) -> Mapping[str, Any]:
    """Return the order of a segment. Raises ``WorkflowError``, which says what is wrong with it."""
    if not isinstance(value, dict):
        raise _unreadable(segment, "it is no mapping")
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise _unreadable(segment, "it has no version")
    if version > INPUT_VERSION:
        raise WorkflowError(
            f"segment `{segment}` was asked for by a newer agentloom (version {version}, this one reads {INPUT_VERSION});"
            " upgrade the workers"
        )
    for name, types in _FIELDS.items():
        if not isinstance(value.get(name), types):
            raise _unreadable(segment, f"`{name}` is missing or of another type")
    if not is_segment(segment) or run_of(segment)[0] != value["run_id"]:
        raise _unreadable(segment, "its id is no segment's of that run")
    if not all(isinstance(line, str) for line in value["lines"]):
        raise _unreadable(segment, "`lines` holds something else than texts")
    order: Mapping[str, Any] = sound(lambda: plain(value, "order"), f"segment `{segment}`")
    return order


def begun_from(order: Mapping[str, Any], recorded: Recorded | None, segment: str) -> CheckpointData | None:
    """Return what a segment goes on from: what earlier lives of it ``recorded``, else the seed of its order; None if it begins.

    Raises ``AgentLoomError`` for what is no checkpoint of that run.
    """
    if recorded is not None:
        journal = recorded
        return sound(lambda: seed_of(journal, order["run_id"], INTERRUPTED, now()), f"segment `{segment}`")
    if order["seed"] is None:
        return None
    data = sound(lambda: CheckpointData.from_dict(order["seed"]), f"segment `{segment}`")
    if data.run_id != order["run_id"]:
        raise _unreadable(segment, "`seed` is that of another run")
    return data


def recorded_in(lines: Sequence[str], segment: str) -> Recorded | None:
    """Return what the lines of a journal hold. Raises ``WorkflowError`` for what is none."""
    return sound(lambda: recorded_of(lines), f"segment `{segment}`")


def sound(read: Callable[[], T], what: str) -> T:
    """Return what ``read`` returns. Raises ``WorkflowError`` where that stumbles over data of a wrong form."""
    try:
        return read()
    except AgentLoomError as error:
        raise WorkflowError(f"{what} can't be read: {error}") from None
    except _DAMAGE as error:
        why = str(error) if isinstance(error, ValueError) else "it isn't what agentloom writes there"
        raise WorkflowError(f"{what} can't be read: {' '.join(why.split())[:200]}") from None


def is_segment(text: str) -> bool:
    """Tell whether a text is the id of a segment of a run."""
    run_id, mark, number = text.rpartition("~")
    return bool(mark) and is_run_id(run_id) and number.isascii() and number.isdigit() and len(number) < 10


def _unreadable(segment: str, why: str) -> WorkflowError:
    return WorkflowError(f"segment `{segment}` can't be read: {why}")
