"""What router expressions may call: functions, and methods of texts, lists and mappings, each within bounds.

Every call first pays for the work it is about to do, and nothing it builds is longer than ``MAX_SIZE`` or ``MAX_ITEMS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from agentloom.language.rendering import kind_of
from agentloom.language.tokens import MAX_DIGITS

MAX_SIZE: Final = 1_000_000
"""The longest text an expression may build, in characters."""
MAX_ITEMS: Final = 100_000
"""The longest list an expression may build."""
MAX_WORK: Final = 500_000
"""The work one evaluation may do: one unit a node or a value that is looked at, one for every 64 characters."""
MAX_STRIPPED: Final = 1000
"""The most characters `strip` takes, since its work is their number times the text's length."""


class Refusal(Exception):
    """A call or an operator that fails; the message is for the user."""


class Work:
    """What is left of the work that one evaluation may do."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_WORK

    def spend(self, characters: int) -> None:
        """Pay for looking at a text of that length, or at one value. Raises ``Refusal`` when too much was done."""
        self.left -= 1 + (characters >> 6)
        if self.left < 0:
            raise Refusal("the condition takes too much work")

    def weigh(self, value: Any) -> int:
        """Pay for looking at everything in ``value``; return about how long it is as text. Shared parts count each time."""
        size = 0
        todo: list[Iterable[Any]] = [(value,)]
        while todo:
            for item in todo.pop():
                if isinstance(item, str):
                    self.spend(len(item))
                    size += len(item) + 4
                elif isinstance(item, Mapping):
                    self.spend(0)
                    todo.append(item.values())
                    for key in item:
                        self.spend(len(key) if isinstance(key, str) else 0)
                        size += (len(key) if isinstance(key, str) else 4) + 6
                elif isinstance(item, list | tuple):
                    self.spend(0)
                    todo.append(item)
                    size += 2 * len(item) + 2
                else:
                    self.spend(0)
                    size += 8
        return size


def refuse_long_text(length: int) -> None:
    """Raise ``Refusal`` for a text of more characters than an expression may build."""
    if length > MAX_SIZE:
        raise Refusal(f"the result is a text of more than {MAX_SIZE} characters")


def refuse_long_list(length: int) -> None:
    """Raise ``Refusal`` for a list of more items than an expression may build."""
    if length > MAX_ITEMS:
        raise Refusal(f"the result is a list of more than {MAX_ITEMS} items")


class Called(NamedTuple):
    """A function or method: how it is written, what it gives, how many arguments it takes, and how it runs."""

    signature: str
    summary: str
    least: int
    most: int
    run: Callable[..., Any]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refusal(f"a text is needed here, not {kind_of(value)}")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise Refusal(f"a whole number is needed here, not {kind_of(value)}")
    return value


def _affixes(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, tuple):
        return tuple(_text(item) for item in value)
    return _text(value)


# Functions: run(work, *arguments)


def _len(work: Work, value: Any) -> int:
    if isinstance(value, str | Mapping | list | tuple):
        return len(value)
    raise Refusal(f"`len` needs a text, a list or a mapping, not {kind_of(value)}")


def _str(work: Work, value: Any = "") -> str:
    if isinstance(value, str):
        return value
    refuse_long_text(work.weigh(value))
    return str(value)


def _int(work: Work, value: Any = 0) -> int:
    if isinstance(value, str) and len(value) > MAX_DIGITS:
        raise Refusal(f"`int` reads texts of up to {MAX_DIGITS} characters")
    if not isinstance(value, str | int | float):
        raise Refusal(f"`int` needs a text or a number, not {kind_of(value)}")
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise Refusal(f"`int` can't read {_shown(value)} as a whole number") from error


def _float(work: Work, value: Any = 0.0) -> float:
    if isinstance(value, str) and len(value) > MAX_DIGITS:
        raise Refusal(f"`float` reads texts of up to {MAX_DIGITS} characters")
    if not isinstance(value, str | int | float):
        raise Refusal(f"`float` needs a text or a number, not {kind_of(value)}")
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise Refusal(f"`float` can't read {_shown(value)} as a number") from error


def _bool(work: Work, value: Any = False) -> bool:
    return bool(value)


def _abs(work: Work, value: Any) -> int | float:
    if isinstance(value, int | float):
        return abs(value)
    raise Refusal(f"`abs` needs a number, not {kind_of(value)}")


def _extreme(name: str, pick: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
    def run(work: Work, *values: Any) -> Any:
        chosen: Any = values[0] if len(values) == 1 else values
        if not isinstance(chosen, str | Mapping | list | tuple):
            raise Refusal(f"`{name}` needs a list, or several values, not {kind_of(chosen)}")
        if not chosen:
            raise Refusal(f"`{name}` of nothing; the list is empty")
        work.weigh(chosen)
        try:
            return pick(chosen)
        except TypeError as error:
            raise Refusal(f"`{name}` can't compare values of different kinds") from error

    return run


def _isinstance(work: Work, value: Any, kinds: Any) -> bool:
    names = kinds if isinstance(kinds, tuple) else (kinds,)
    return any(isinstance(value, TYPES[name]) for name in names)


TYPES: Final[Mapping[str, type[Any]]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": Mapping,
}
"""The names that may stand as second argument of ``isinstance``, and what they mean."""

FUNCTIONS: Final[Mapping[str, Called]] = {
    "len": Called("len(value)", "The number of characters, items or keys.", 1, 1, _len),
    "str": Called("str(value)", "The value as text.", 0, 1, _str),
    "int": Called("int(value)", "The whole number that a text or a number holds.", 0, 1, _int),
    "float": Called("float(value)", "The number that a text holds.", 0, 1, _float),
    "bool": Called("bool(value)", "False for empty values, 0 and None; else True.", 0, 1, _bool),
    "abs": Called("abs(number)", "The number without its sign.", 1, 1, _abs),
    "min": Called("min(list) or min(a, b, …)", "The smallest of the values.", 1, 100, _extreme("min", min)),
    "max": Called("max(list) or max(a, b, …)", "The largest of the values.", 1, 100, _extreme("max", max)),
    "isinstance": Called(
        "isinstance(value, str)", "Whether the value is a str, int, float, bool, list or dict.", 2, 2, _isinstance
    ),
}
"""The functions of router expressions, by name."""


# Methods: run(work, receiver, *arguments)


def _case(name: str) -> Callable[..., str]:
    def run(work: Work, text: str) -> str:
        refuse_long_text(len(text))
        changed: str = getattr(text, name)()
        refuse_long_text(len(changed))
        return changed

    return run


def _test(name: str) -> Callable[..., bool]:
    return lambda work, text: bool(getattr(text, name)())


def _strip(name: str) -> Callable[..., str]:
    def run(work: Work, text: str, characters: Any = None) -> str:
        if characters is not None and len(_text(characters)) > MAX_STRIPPED:
            raise Refusal(f"`{name}` takes up to {MAX_STRIPPED} characters")
        work.spend(len(text) * (len(characters) if characters else 1) >> 3)
        stripped: str = getattr(text, name)(characters)
        refuse_long_text(len(stripped))
        return stripped

    return run


def _startswith(work: Work, text: str, prefix: Any) -> bool:
    work.weigh(prefix)
    return text.startswith(_affixes(prefix))


def _endswith(work: Work, text: str, suffix: Any) -> bool:
    work.weigh(suffix)
    return text.endswith(_affixes(suffix))


def _split(work: Work, text: str, separator: Any = None, most: Any = -1) -> list[str]:
    if separator is not None and not _text(separator):
        raise Refusal("`split` needs a separator that isn't empty")
    limit = _whole(most)
    refuse_long_text(len(text))
    parts = text.split(separator, limit if 0 <= limit <= MAX_ITEMS else MAX_ITEMS)
    refuse_long_list(len(parts))
    return parts


_LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def _splitlines(work: Work, text: str) -> list[str]:
    refuse_long_text(len(text))
    refuse_long_list(sum(text.count(char) for char in _LINE_BREAKS))
    return text.splitlines()


def _replace(work: Work, text: str, old: Any, new: Any, count: Any = -1) -> str:
    times = text.count(_text(old))
    if 0 <= _whole(count) < times:
        times = count
    refuse_long_text(len(text) + times * (len(_text(new)) - len(old)))
    return text.replace(old, new, count)


def _find(work: Work, text: str, part: Any) -> int:
    return text.find(_text(part))


def _text_index(work: Work, text: str, part: Any) -> int:
    found = text.find(_text(part))
    if found < 0:
        raise Refusal(f"`index` finds no {_shown(part)} in the text; `find` gives -1 then")
    return found


def _text_count(work: Work, text: str, part: Any) -> int:
    return text.count(_text(part))


def _remove(name: str) -> Callable[..., str]:
    def run(work: Work, text: str, part: Any) -> str:
        rest: str = getattr(text, name)(_text(part))
        refuse_long_text(len(rest))
        return rest

    return run


def _join(work: Work, text: str, items: Any) -> str:
    if not isinstance(items, list | tuple | str | Mapping):
        raise Refusal(f"`join` needs a list of texts, not {kind_of(items)}")
    size = max(0, len(items) - 1) * len(text)
    for item in items:
        size += len(_text(item))
        work.spend(len(item))
        refuse_long_text(size)
    return text.join(items)


def _list_index(work: Work, items: Sequence[Any], value: Any) -> int:
    work.weigh(items)
    try:
        return items.index(value)
    except ValueError as error:
        raise Refusal("`index` finds no such item in the list") from error


def _list_count(work: Work, items: Sequence[Any], value: Any) -> int:
    work.weigh(items)
    return items.count(value)


def _get(work: Work, mapping: Mapping[str, Any], key: Any, default: Any = None) -> Any:
    if not isinstance(key, str | int | float | None):
        raise Refusal(f"`get` needs a key, not {kind_of(key)}")
    return mapping.get(key, default)  # type: ignore[arg-type]  # keys of other kinds just aren't there


def _keys(work: Work, mapping: Mapping[str, Any]) -> list[Any]:
    return list(_few(work, mapping))


def _values(work: Work, mapping: Mapping[str, Any]) -> list[Any]:
    return list(_few(work, mapping).values())


def _items(work: Work, mapping: Mapping[str, Any]) -> list[Any]:
    return list(_few(work, mapping).items())


def _few(work: Work, mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    work.spend(len(mapping) << 6)
    refuse_long_list(len(mapping))
    return mapping


Receiver = Literal["text", "list", "mapping"]

METHODS: Final[Mapping[Receiver, Mapping[str, Called]]] = {
    "text": {
        "strip": Called("strip()", "The text without spaces at both ends.", 0, 1, _strip("strip")),
        "lstrip": Called("lstrip()", "The text without spaces at its beginning.", 0, 1, _strip("lstrip")),
        "rstrip": Called("rstrip()", "The text without spaces at its end.", 0, 1, _strip("rstrip")),
        "lower": Called("lower()", "The text in small letters.", 0, 0, _case("lower")),
        "upper": Called("upper()", "The text in capitals.", 0, 0, _case("upper")),
        "casefold": Called("casefold()", "The text ready to be compared without case.", 0, 0, _case("casefold")),
        "title": Called("title()", "The text with each word capitalised.", 0, 0, _case("title")),
        "capitalize": Called("capitalize()", "The text with a capital first.", 0, 0, _case("capitalize")),
        "startswith": Called("startswith(prefix)", "Whether the text begins so.", 1, 1, _startswith),
        "endswith": Called("endswith(suffix)", "Whether the text ends so.", 1, 1, _endswith),
        "split": Called("split(separator)", "The parts between separators, or the words.", 0, 2, _split),
        "splitlines": Called("splitlines()", "The lines.", 0, 0, _splitlines),
        "replace": Called("replace(old, new)", "The text with one part replaced by another.", 2, 3, _replace),
        "find": Called("find(part)", "Where a part begins, or -1.", 1, 1, _find),
        "index": Called("index(part)", "Where a part begins; fails if it isn't there.", 1, 1, _text_index),
        "count": Called("count(part)", "How often a part occurs.", 1, 1, _text_count),
        "removeprefix": Called("removeprefix(part)", "The text without this beginning.", 1, 1, _remove("removeprefix")),
        "removesuffix": Called("removesuffix(part)", "The text without this end.", 1, 1, _remove("removesuffix")),
        "join": Called("join(list)", "The texts of a list, with this one between them.", 1, 1, _join),
        "isdigit": Called("isdigit()", "Whether all of it is digits.", 0, 0, _test("isdigit")),
        "isnumeric": Called("isnumeric()", "Whether all of it is numeric.", 0, 0, _test("isnumeric")),
        "isdecimal": Called("isdecimal()", "Whether all of it is decimal digits.", 0, 0, _test("isdecimal")),
        "isalpha": Called("isalpha()", "Whether all of it is letters.", 0, 0, _test("isalpha")),
        "isalnum": Called("isalnum()", "Whether all of it is letters and digits.", 0, 0, _test("isalnum")),
        "isspace": Called("isspace()", "Whether all of it is white space.", 0, 0, _test("isspace")),
        "islower": Called("islower()", "Whether its letters are small.", 0, 0, _test("islower")),
        "isupper": Called("isupper()", "Whether its letters are capitals.", 0, 0, _test("isupper")),
    },
    "list": {
        "index": Called("index(value)", "Where a value stands first; fails if it isn't there.", 1, 1, _list_index),
        "count": Called("count(value)", "How often a value occurs.", 1, 1, _list_count),
    },
    "mapping": {
        "get": Called("get(key, default)", "The value of a key, or the default, or None.", 1, 2, _get),
        "keys": Called("keys()", "The keys, as a list.", 0, 0, _keys),
        "values": Called("values()", "The values, as a list.", 0, 0, _values),
        "items": Called("items()", "The pairs of key and value, as a list.", 0, 0, _items),
    },
}
"""The methods of router expressions, by what they belong to and by name."""

METHOD_NAMES: Final = frozenset(name for methods in METHODS.values() for name in methods)


def receiver_of(value: Any) -> Receiver | None:
    """Return which methods a value has."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "mapping"
    return "list" if isinstance(value, list | tuple) else None


def arity(called: Called) -> str:
    """Return how many arguments something takes, in words."""
    if called.least == called.most:
        return ("no argument", "one argument", "two arguments")[called.least]
    if called.most > 2:
        return f"at least {('no', 'one', 'two')[called.least]} argument" + ("s" if called.least > 1 else "")
    return f"{called.least} to {called.most} arguments"


def _shown(value: Any) -> str:
    text = " ".join(str(value).split()) if isinstance(value, str) else repr(value)
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}…`"
