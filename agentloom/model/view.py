"""A checked workflow with its defaults filled in, read like the typed model, made from the catalogue.

Running a small workflow is mostly importing pydantic and building its validators; what the shape check has accepted needs neither. A
test holds this to the pydantic model over thousands of documents: the same fields, the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agentloom.model.catalogue import STEP, Field, Shape, catalogue

if TYPE_CHECKING:
    from agentloom.model.agent import AgentDefinition
    from agentloom.model.workflow import Workflow

Convert = Callable[[Any], Any]

NAMES = {"inline": "schema"}
"""What the model calls a field whose key would hide something of pydantic's own."""


class View:
    """A block of the file. Its keys are attributes, defaults included; ``model_fields_set`` are the keys that the file gives.

    Lists are tuples, blocks are views, open mappings are the file's own. Not to be changed.
    """

    __slots__ = ("__dict__", "model_fields_set")

    model_fields_set: frozenset[str]

    def __init__(self, values: dict[str, Any], given: frozenset[str]) -> None:
        object.__setattr__(self, "__dict__", values)
        object.__setattr__(self, "model_fields_set", given)

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is no key: a field of the model that is called otherwise than its key in the file.
        key = NAMES.get(name)
        if key is None or key not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__[key]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"`{name}` can't be set: a workflow is immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"View({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def view_workflow(data: Mapping[str, Any]) -> Workflow:
    """Return the view of a workflow's plain data, typed as what it stands for. The shape check must have accepted it."""
    return cast("Workflow", _view(catalogue().workflow, data))


def view_agent(data: Mapping[str, Any]) -> AgentDefinition:
    """Return the view of an agent's plain data, typed as what it stands for. The shape check must have accepted it."""
    return cast("AgentDefinition", _view(catalogue().agent, data))


class _Plan(NamedTuple):
    """How a block is read: the values of keys that aren't given or are null, and what converts the others (None: nothing)."""

    defaults: Mapping[str, Any]
    empty: Mapping[str, Any]
    converts: Mapping[str, Convert | None]


def _view(block: str, data: Mapping[str, Any]) -> View:
    plan = _plan(block)
    values = dict(plan.defaults)
    for name, value in data.items():
        if value is None:
            values[name] = plan.empty[name]
        else:
            convert = plan.converts[name]
            values[name] = value if convert is None else convert(value)
    return View(values, frozenset(data))


@lru_cache(maxsize=64)
def _plan(block: str) -> _Plan:
    fields = catalogue().blocks[block].fields
    converts = {name: _convert(field.shape) for name, field in fields.items()}
    defaults: dict[str, Any] = {}
    for name, field in fields.items():
        if field.has_default:
            convert = converts[name]
            same = field.default is None or convert is None
            defaults[name] = field.default if same or convert is None else convert(field.default)
    return _Plan(defaults, {name: _empty(field) for name, field in fields.items()}, converts)


def _empty(field: Field) -> Any:
    """Return what null means: nothing where that is the default, else an empty list, mapping or block."""
    if field.default is None:
        return None
    if "array" in field.shape.types:
        return ()
    if field.shape.block is not None:
        return _view(field.shape.block, {})
    return {}


def _convert(shape: Shape) -> Convert | None:
    """Return what makes the model's value of a value that isn't null; None if they are the same."""
    if shape.any_of:
        return lambda value: _alternative(shape, value)
    if shape.block == STEP:
        steps = catalogue().steps
        return lambda value: _view(steps[value["type"]], value)
    if shape.block is not None:
        block = shape.block
        return lambda value: _view(block, value or {})
    if shape.item is not None:
        item = _convert(shape.item)
        return tuple if item is None else lambda value: tuple(map(item, value))
    if shape.values is not None:
        inner = _convert(shape.values)
        return None if inner is None else lambda value: {key: inner(entry) for key, entry in value.items()}
    if "number" in shape.types and "integer" not in shape.types:
        return _text_of_number if "string" in shape.types else float
    return None


def _alternative(shape: Shape, value: Any) -> Any:
    kind = "string" if isinstance(value, str) else "object"
    found = catalogue().alternative(shape, kind, value if isinstance(value, Mapping) else ())
    convert = _convert(found) if found is not None else None
    return value if convert is None else convert(value)


def _text_of_number(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
