"""What is said about the functions, methods, names and operators of router expressions."""

from __future__ import annotations

from agentloom.ide.prose.form import Code, Inline, Items, Prose, say
from agentloom.language.functions import FUNCTIONS, METHODS, TYPES, Called

ROOTS = {
    "state": "The state as it was when this step's layer began: what the file sets under `state`, what the command line gives, "
    "and what earlier steps wrote.",
    "steps": "The results of steps that ran: `steps.<id>.output` and `steps.<id>.status`. A step that failed or didn't run reads as None.",
    "reply": "The text of the model's last reply.",
}
"""The names that stand for data; `reply` in an agent's `exit_condition` only."""

WORDS = {
    "and": "True if both sides are.",
    "or": "True if one side is.",
    "not": "True if what follows isn't.",
    "in": "Whether a text holds another, a list an item, or a mapping a key.",
    "not in": "Whether a text, list or mapping holds it not.",
    "is": "Whether two values are the same; for None, True and False.",
    "is not": "Whether two values are not the same; for None, True and False.",
    "if": "`a if test else b`: one of two values.",
    "else": "`a if test else b`: one of two values.",
    "True": "The truth value true.",
    "False": "The truth value false.",
    "None": "No value: what a missing key reads as.",
}
"""The words of the language."""

_RECEIVERS = {"text": "a text", "list": "a list", "mapping": "a mapping"}


def of_function(name: str) -> Prose:
    """Return what a function does; nothing for one that there isn't."""
    called = FUNCTIONS.get(name)
    return (say(Code(called.signature)), say(called.summary)) if called is not None else ()


def of_method(name: str) -> Prose:
    """Return what a method does, for each kind of value that has it."""
    found = [(kind, methods[name]) for kind, methods in METHODS.items() if name in methods]
    if not found:
        return ()
    if len(found) == 1:
        kind, called = found[0]
        return (say(Code(called.signature), f" of {_RECEIVERS[kind]}"), say(called.summary))
    items = tuple(_method(kind, called) for kind, called in found)
    return (say(Code(found[0][1].signature)), Items(items))


def of_root(name: str) -> Prose:
    """Return what a name stands for."""
    return (say(Code(name)), say(ROOTS[name])) if name in ROOTS else ()


def of_word(name: str) -> Prose:
    """Return what a word of the language does."""
    return (say(Code(name)), say(WORDS[name])) if name in WORDS else ()


def of_type(name: str) -> Prose:
    """Return what a type's name means behind `isinstance`."""
    meanings = {"str": "a text", "int": "a whole number", "float": "a decimal number", "bool": "a truth value"}
    meanings |= {"list": "a list", "dict": "a mapping"}
    return (say(Code(name), f": {meanings[name]}"),) if name in TYPES else ()


def _method(kind: str, called: Called) -> tuple[Inline, ...]:
    return (f"of {_RECEIVERS[kind]}: {called.summary}",)
