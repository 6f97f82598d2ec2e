"""What a model's reply must fit: any object, a JSON Schema, a pydantic class; and in words what doesn't.

jsonschema and pydantic are imported when the first reply is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from agentloom.errors import ValidationError
from agentloom.tools.schema import kind_of, words_for

if TYPE_CHECKING:
    from pydantic import BaseModel

MOST_FAULTS = 20
"""How many faults of one reply are told."""

_SHOWN = 60
_BY_WORDS = (
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf", "oneOf",
)  # fmt: skip


class Form(NamedTuple):
    """What a reply must fit. ``schema`` is for the provider; empty for any object.

    ``check`` takes a reply as plain data and returns what is kept of it, and what is wrong with it in words.
    """

    schema: Mapping[str, Any]
    check: Callable[[Any], tuple[Any, list[str]]]


def any_object() -> Form:
    """Return the form of a reply that may be any JSON object."""

    def check(value: Any) -> tuple[Any, list[str]]:
        return value, [] if isinstance(value, dict) else [f"the reply must be an object, not {kind_of(value)}"]

    return Form({}, check)


def fitting(schema: Mapping[str, Any]) -> Form:
    """Return the form of a reply that must fit a JSON Schema; without a `$schema` of its own that of 2020-12.

    Its ``check`` raises ``ValidationError`` for a schema that can't be used, such as one with a reference that leads nowhere.
    """

    def check(value: Any) -> tuple[Any, list[str]]:
        return value, list(_faults(schema, value))

    return Form(schema, check)


def like_class(path: str, folder: str | None = None) -> Form:
    """Return the form of a reply that must fit a pydantic class, named `package.module:Class` or `package.module.Class`.

    What is kept of it is what the class makes of it, as JSON. The class's module is imported, from ``folder`` as well. Raises
    ``ValidationError`` when there is no such class.
    """
    found = _class_at(path, folder)
    try:
        schema = found.model_json_schema()
    except Exception as error:  # a class may describe itself with any code
        raise ValidationError(f"`{path}` can't be described as a JSON Schema: {error}") from error

    def check(value: Any) -> tuple[Any, list[str]]:
        import pydantic

        try:
            return found.model_validate(value).model_dump(mode="json"), []
        except pydantic.ValidationError as error:
            return value, list(_faults_of_class(schema, value, error))
        except Exception as error:
            raise ValidationError(f"`{path}` can't check the reply: {type(error).__name__}: {error}") from error

    return Form(schema, check)


def _class_at(path: str, folder: str | None) -> type[BaseModel]:
    import pydantic

    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)  # behind everything else: a file beside the workflow must not stand in for a library
    try:
        found: Any = import_module(module)
    except Exception as error:
        raise ValidationError(f"module `{module}` can't be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, pydantic.BaseModel)):
        raise ValidationError(f"`{name}` in module `{module}` is no pydantic class")
    return found


def _faults(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Yield what is wrong with a value, at most ``MOST_FAULTS`` times. Raises ``ValidationError`` for a schema that can't be used."""
    from jsonschema import exceptions, validators
    from referencing import Registry  # an empty one: nothing is ever fetched

    made = validators.validator_for(schema, default=validators.validator_for({}))
    seen: dict[str, bool] = {}
    try:
        for error in made(schema, registry=Registry()).iter_errors(value):
            for text in _words(error):
                if text not in seen:
                    seen[text] = True
                    yield text
            if len(seen) >= MOST_FAULTS:
                return
    except exceptions.ValidationError:
        raise
    except RecursionError:
        raise ValidationError("the JSON Schema refers to itself without end") from None
    except Exception as error:  # a reference that leads nowhere, a pattern that is none, a type that is none
        raise ValidationError(
            f"the JSON Schema can't be used: {str(error).partition(chr(10))[0] or error!r}"
        ) from error


def _words(error: Any) -> Iterator[str]:
    """Yield one fault in our words."""
    where = _place(error.absolute_path)
    named = f"`{where}`" if where else "the reply"
    keyword, schema, found = error.validator, error.schema, error.instance
    if keyword == "required":
        for name in error.validator_value:
            if name not in found:
                yield f"`{_below(where, name)}` is missing"
    elif keyword == "additionalProperties" and error.validator_value is False:
        for name in found:
            if name not in schema.get("properties", {}):
                yield f"`{_below(where, name)}` is not allowed"
    elif keyword in _BY_WORDS and (words := words_for(schema)) != "a different value":
        yield f"{named} must be {words}, not {_shown(found)}"
    else:
        yield f"{named} doesn't fit `{keyword}: {_cut(error.validator_value)}`"


def _faults_of_class(schema: Mapping[str, Any], value: Any, error: Any) -> Iterator[str]:
    """Yield what a pydantic class refused: in the words of its JSON Schema, in its author's own, else by the place alone."""
    told = False
    for detail in error.errors(include_url=False, include_context=True)[:MOST_FAULTS]:
        where = _place(detail["loc"])
        said = detail.get("ctx", {}).get("error") if detail["type"] in ("value_error", "assertion_error") else None
        if said is not None:
            told = True
            yield f"`{where}`: {_cut(said)}" if where else _cut(said)
    if not told:
        by_schema = list(_faults(schema, value))
        yield from by_schema
        if not by_schema:
            for detail in error.errors(include_url=False, include_context=False)[:MOST_FAULTS]:
                where = _place(detail["loc"]) or "the reply"
                yield f"`{where}` can't be used ({detail['type'].replace('_', ' ')})"


def _place(path: Sequence[Any]) -> str:
    where = ""
    for part in path:
        where = f"{where}[{part}]" if isinstance(part, int) else _below(where, part)
    return where


def _below(where: str, name: Any) -> str:
    text = _cut(name)
    return f"{where}.{text}" if where else text


def _shown(value: Any) -> str:
    simple = isinstance(value, str | int | float) and not isinstance(value, bool)
    return f"`{_cut(value)}`" if simple else kind_of(value)


def _cut(value: Any) -> str:
    text = " ".join(str(value)[: 4 * _SHOWN].split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
