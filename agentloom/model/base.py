"""What every class of the model shares: strictness, and the few kinds of values that the file needs beyond pydantic's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

from agentloom.model.marks import Mark

T = TypeVar("T")


class Model(BaseModel):
    """A mapping of the file: closed, strict and immutable.

    Validators are built on first use (``defer_build``), so that importing the model stays cheap. NaN and infinity are refused:
    no duration, price or temperature can be one, and JSON doesn't know them.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
    )


class OrNothing(BeforeValidator):
    """Metadata: null (an empty key in YAML) is accepted and means what leaving the key out means: ``empty()``.

    Stands on blocks whose keys are all optional, and on lists and mappings that are empty by default.
    """

    def __init__(self, empty: Callable[[], Any]) -> None:
        super().__init__(lambda value: empty() if value is None else value)


class NumberAsText(BeforeValidator):
    """Metadata: a number is accepted where a text is meant, and becomes its text (``version: 1.0``)."""

    def __init__(self) -> None:
        super().__init__(lambda value: str(value) if type(value) in (int, float) else value)


class Choices:
    """Metadata on a ``Literal``: what each value means, in the order in which editors offer them."""

    __slots__ = ("texts",)

    def __init__(self, **texts: str) -> None:
        self.texts = tuple(texts.items())


# A list of the file. A tuple in the model, since the model is immutable; YAML's lists are taken although the model is strict.
Items: TypeAlias = Annotated[tuple[T, ...], Strict(False)]
ItemsOrNothing: TypeAlias = Annotated[tuple[T, ...], Strict(False), OrNothing(tuple)]
Open: TypeAlias = Annotated[dict[str, T], OrNothing(dict)]

# A name that templates can read back: of ASCII only letters, digits, `_` and `-`; other letters and symbols as they are. It has to
# mean the same to Python, to Rust (pydantic) and to JavaScript (editors), hence no look-ahead, no `\s`, no `\d`; and editors print
# it in their message, hence nothing finer. `agentloom.language.paths` refuses two underscores in front and the spaces of Unicode
# besides: that is for a rule to say. A test holds that nothing it takes is refused here.
_NAME = r"[^\x00-,./:-@\[-^`{-\x7f]+"
_PATH = rf"{_NAME}(\.{_NAME}|\[-?[0-9]+\])*"
_DOTTED = rf"{_NAME}(\.{_NAME})*"

Name: TypeAlias = Annotated[str, Field(pattern=rf"^{_NAME}$")]
StatePath: TypeAlias = Annotated[str, Field(pattern=rf"^{_PATH}$")]
EmbedPath: TypeAlias = Annotated[str, Field(pattern=rf"^({_DOTTED}|\{{{_DOTTED}\}})$"), Mark("state_read")]

Template: TypeAlias = Annotated[str, Mark("template")]
Prose: TypeAlias = Annotated[str, Mark("text")]
StepRef: TypeAlias = Annotated[str, Mark("ref", "step")]
ModelName: TypeAlias = Annotated[str, Field(min_length=1), Mark("model")]
# A negative timeout or budget certainly ruins a run, so it is refused here (AL106); 0 means no limit, or no money. Other odd waits
# (`backoff_max`, `latency_ms`) have no bounds in the model: they are warnings of a rule (AL510).
Seconds: TypeAlias = Annotated[float, Field(ge=0), Mark("duration", "seconds")]
Money: TypeAlias = Annotated[float, Field(ge=0), Mark("money")]
AnyPath: TypeAlias = Annotated[str, Mark("file", "any")]
JsonSchema: TypeAlias = Annotated[dict[str, Any], Mark("json_schema")]
