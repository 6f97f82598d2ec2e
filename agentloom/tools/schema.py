"""From a function's type hints to the JSON Schema of its arguments, and from arguments to checked values.

pydantic is imported only when a tool's schema or arguments are first needed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from agentloom.errors import UsageError, ValidationError
from agentloom.records import record
from agentloom.similar import closest

if TYPE_CHECKING:
    from pydantic import BaseModel

_LONGEST_SHOWN = 40
_MOST_PARTS = 2000
"""The largest schema, in keys and values, that its definitions are written into."""

_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
}


@record()
class Signature:
    """The arguments of one function: a pydantic model of them, their JSON Schema, and their names in the model."""

    model: type[BaseModel]
    parameters: Mapping[str, Any]
    names: Mapping[str, str]
    open: bool

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function's types want them. Raises ``ValidationError`` that says what is wrong.

        What isn't given is left to the function's own defaults.
        """
        import pydantic

        try:
            checked = self.model.model_validate(dict(arguments))
        except pydantic.ValidationError as error:
            faults = [self._fault(detail) for detail in error.errors(include_url=False, include_context=True)]
            raise ValidationError("; ".join(dict.fromkeys(faults))) from None
        values = {
            self.names[field]: getattr(checked, field) for field in self.names if field in checked.model_fields_set
        }
        return values | (checked.model_extra or {})

    def _fault(self, detail: Mapping[str, Any]) -> str:
        """Return one fault in our words: pydantic's sentences are for programmers."""
        location = [str(part) for part in detail["loc"]]
        name, kind, found = location[0], detail["type"], detail["input"]
        if kind == "missing" and len(location) == 1:
            return f"argument `{name}` is missing"
        if kind == "extra_forbidden" and len(location) == 1:
            known = list(self.parameters["properties"])
            near = closest(name, known)
            cure = f"did you mean `{near}`?" if near else _known(known)
            return f"unknown argument `{name}`; {cure}"
        schema = self.parameters["properties"].get(name, {})
        # Locations inside unions and mappings hold pydantic's own words; only keys and indices are the user's.
        where = (
            name if len(location) == 1 or "anyOf" in schema else ".".join(part for part in location if part != "[key]")
        )
        if kind in ("missing", "extra_forbidden") and where != name:
            return f"argument `{where}` is missing" if kind == "missing" else f"unknown argument `{where}`"
        wanted = words_for(schema if where == name else {}, detail)
        shown = _found(found, wanted)
        if shown in wanted.split(" or "):  # a list is wanted and found, and something in it is wrong
            return f"argument `{where}` holds a value of another type than it must"
        return f"argument `{where}` must be {wanted}, not {shown}"


def signature_of(function: Callable[..., Any], name: str) -> Signature:
    """Return the arguments of a function. Raises ``UsageError`` when its types can't be described in JSON Schema."""
    import pydantic
    from pydantic.errors import PydanticUserError

    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    is_open = False
    try:
        found = get_type_hints(_hinted(function), include_extras=True)
        hints = {name: _described(hint) for name, hint in found.items()}
    except Exception as error:  # a hint may be any expression, and fail in any way
        raise UsageError(f"tool `{name}`: its type hints can't be read: {error}") from None
    for at, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise UsageError(f"tool `{name}`: `{parameter.name}` can't be given by name")
        # Names of our own inside the model, so that no argument's name can clash with pydantic's.
        key = f"a{at}"
        names[key] = parameter.name
        hint = hints.get(parameter.name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[key] = (hint, pydantic.Field(default=default, alias=parameter.name, **_said_in(hint)))
    try:
        config = pydantic.ConfigDict(extra="allow" if is_open else "forbid", populate_by_name=False)
        model = pydantic.create_model(f"{name} arguments", __config__=config, **fields)
        parameters = _plain_schema(model, is_open)
    except PydanticUserError as error:
        raise UsageError(
            f"tool `{name}`: its arguments can't be described in JSON Schema; use types that JSON can hold"
        ) from error
    return Signature(model, parameters, names, is_open)


def _described(hint: Any) -> Any:
    """Return a hint in which pydantic can read every `TypedDict`: those of the standard library only from Python 3.12 on."""
    if sys.version_info >= (3, 12):
        return hint
    if is_typeddict(hint) and type(hint).__module__ == "typing":
        import typing_extensions

        known = {}
        for name, inner in get_type_hints(hint, include_extras=True).items():
            # `__required_keys__` knows nothing of marks that stand in texts, as all hints do in modules with postponed annotations.
            marked = get_origin(inner) in (Required, NotRequired)
            needed = get_origin(inner) is Required if marked else name in hint.__required_keys__
            known[name] = _described(get_args(inner)[0] if marked else inner)
            if not needed:
                known[name] = typing_extensions.NotRequired[known[name]]
        return typing_extensions.TypedDict(hint.__name__, known)  # type: ignore[operator]
    inner = get_args(hint)
    if get_origin(hint) in (None, Literal) or not inner:
        return hint
    changed = tuple(_described(part) if not isinstance(part, list) else part for part in inner)
    if get_origin(hint) is Annotated:
        return Annotated[(_described(inner[0]), *inner[1:])]
    if all(one is other for one, other in zip(changed, inner, strict=True)):
        return hint
    if get_origin(hint) in (Union, UnionType):
        return Union[changed]  # noqa: UP007 - made of what only the run knows
    return get_origin(hint)[changed]


def words_for(schema: Mapping[str, Any], detail: Mapping[str, Any] | None = None) -> str:
    """Return in words what a schema asks for: `a whole number`, `one of `GET`, `POST``."""
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return "one of " + ", ".join(f"`{choice}`" for choice in choices)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(words_for(part) for part in schema["anyOf"]))
    kind = schema.get("type")
    if detail is not None and not isinstance(kind, str):
        kind = next((known for word, known in _KIND_OF_ERROR.items() if detail["type"].startswith(word)), None)
    words = _WORDS.get(kind, "a different value") if isinstance(kind, str) else "a different value"
    if "minimum" in schema and "maximum" in schema:
        return f"{words} from {schema['minimum']} to {schema['maximum']}"
    for key, word in (
        ("minimum", "from {} up"),
        ("exclusiveMinimum", "above {}"),
        ("maximum", "up to {}"),
        ("exclusiveMaximum", "below {}"),
    ):
        if key in schema:
            words += " " + word.format(schema[key])
    return words


def kind_of(value: Any) -> str:
    """Return in words what kind of value this is. Values themselves are not repeated: they may be secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"


_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_KIND_OF_ERROR = {
    "string": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "model": "object",
}


def _plain_schema(model: type[BaseModel], is_open: bool) -> dict[str, Any]:
    """Return the model's schema without pydantic's titles."""
    from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

    class Plain(GenerateJsonSchema):
        # A default that JSON can't hold is left out of the schema; the function still has it.
        ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    found = _inlined(model.model_json_schema(by_alias=True, schema_generator=Plain))
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {name: _without_titles(schema) for name, schema in found.get("properties", {}).items()},
        "required": found.get("required", []),
        "additionalProperties": is_open,
    }
    if "$defs" in found:
        parameters["$defs"] = found["$defs"]
    return parameters


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its definitions where they are referred to, which more models and readers understand.

    One that contains itself, or would become large, stays as it is.
    """
    definitions = schema.get("$defs")
    if not definitions:
        return schema
    left = _MOST_PARTS

    def inline(part: Any, above: tuple[str, ...]) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise RecursionError
        if isinstance(part, list):
            return [inline(item, above) for item in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return {key: inline(value, above) for key, value in part.items()}
        name = reference.removeprefix("#/$defs/")
        if name in above:
            raise RecursionError
        said = {key: inline(value, above) for key, value in part.items() if key != "$ref"}
        return inline(definitions[name], (*above, name)) | said

    try:
        return {key: inline(value, ()) for key, value in schema.items() if key != "$defs"}
    except (RecursionError, KeyError):
        return schema


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title" or not isinstance(value, str)}


def _hinted(function: Callable[..., Any]) -> Any:
    """Return what carries the type hints: the function inside a ``partial``, the method behind an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _said_in(hint: Any) -> dict[str, Any]:
    """Return what ``Annotated[float, "how long", {"minimum": 0}]`` says besides the type, as arguments of ``pydantic.Field``."""
    said: dict[str, Any] = {}
    for extra in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(extra, str):
            said["description"] = extra
        elif isinstance(extra, dict):
            said |= {_BOUNDS[key]: value for key, value in extra.items() if key in _BOUNDS}
    return said


def _found(value: Any, wanted: str) -> str:
    """Return what was found where ``wanted`` was: the value where only certain ones are allowed or it is out of bounds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"`{value}`" if isinstance(value, float) or abs(value) < 10**_LONGEST_SHOWN else kind_of(value)
    named = "`" in wanted and isinstance(value, str) and len(value) <= _LONGEST_SHOWN and value.isprintable()
    return f"`{value}`" if named else kind_of(value)


def _known(names: list[str]) -> str:
    return "known are " + ", ".join(f"`{name}`" for name in names) if names else "there are none"
