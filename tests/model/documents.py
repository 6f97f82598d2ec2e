"""Makes workflow and agent documents by the thousand, from the catalogue: valid ones, and ones with a few mistakes.

Everything comes from a seed, so a failing document can be made again. What JSON itself can't tell apart (``5.0`` and ``5``) or
hold (NaN, keys that are no text, half surrogates) is left out here: those edges have a table of their own in the tests.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from agentloom.model.catalogue import STEP, Block, Catalogue, Shape, catalogue

NAMES = ("a", "b_1", "c-d", "été", "步骤", "fetch", "_x", "0")
PATHS = (*NAMES, "report.summary", "items[0]", "a.b[-1].c")
TEXTS = (*NAMES, "", " ", "hello", "{state.x}", "a b", "x.y.z", "1.0", "true", "😀", "auto", "./child.loom.yaml")
NUMBERS = (-2, -1, 0, 1, 2, 3, 1024, 1025, 10**12, -0.5, 0.5, 2.5)
ANYTHING = (None, True, False, *NUMBERS, *TEXTS, [], {}, ["a"], [1], [None], {"a": 1}, {"name": "x"}, [{"name": "x"}])
KEYS = ("promt", "dependson", "outptu", "budgt_usd", "Prompt", "max_retry", "responses", "$schema", "x-note", "")


@dataclass(frozen=True)
class Site:
    """One value of a document: where it lies, and the shape it is measured by."""

    container: Any
    key: Any
    shape: Shape
    block: Block | None
    """The block that the value is, if it is one."""


def workflow(seed: int) -> dict[str, Any]:
    """Return a valid workflow."""
    return Maker(seed).block(catalogue().blocks["workflow"], 0)


def agent(seed: int) -> dict[str, Any]:
    """Return a valid agent definition."""
    return Maker(seed).block(catalogue().blocks["agent"], 0)


def nearly(kind: str, seed: int) -> Any:
    """Return a document of a kind (`workflow`, `agent`) with one to three changes, most of them mistakes."""
    rng = random.Random(f"{kind} {seed}")
    document = copy.deepcopy(workflow(seed) if kind == "workflow" else agent(seed))
    box = {"document": document}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(rng, seed, list(sites(catalogue(), box, "document", Shape(types=("object",), block=kind))))
    return box["document"]


def documents(kind: str = "workflow") -> st.SearchStrategy[Any]:
    """Return a hypothesis strategy of documents, valid and nearly valid."""
    seeds = st.integers(min_value=0, max_value=2**32)
    make = workflow if kind == "workflow" else agent
    return st.one_of(seeds.map(make), seeds.map(lambda seed: nearly(kind, seed)))


class Maker:
    """Makes valid values of shapes and blocks."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.known = catalogue()

    def block(self, block: Block, depth: int) -> dict[str, Any]:
        """Return a mapping with all required and some optional keys, in any order."""
        wanted = 0.35 if depth < 2 else 0.15
        fields = [f for f in block.fields.values() if f.required or self.rng.random() < wanted]
        self.rng.shuffle(fields)
        return {f.name: self.value(f.shape, depth + 1) for f in fields}

    def value(self, shape: Shape, depth: int) -> Any:
        """Return a valid value of a shape."""
        rng = self.rng
        if shape.any_of:
            return self.value(rng.choice(shape.any_of), depth)
        kinds = list(shape.types) or ["any"]
        if "null" in kinds and len(kinds) > 1:
            kinds = ["null"] if rng.random() < 0.15 or depth > 6 else [k for k in kinds if k != "null"]
        kind = rng.choice(kinds)
        if kind == "object" and shape.block:
            return self.block(self._named(shape.block), depth)
        if kind == "object":
            return {k: self.value(shape.values or Shape(), depth + 1) for k in rng.sample(NAMES, rng.randint(0, 2))}
        if kind == "array":
            count = rng.randint(shape.min_items or 0, 3 if depth < 3 else 1 + (shape.min_items or 0))
            return [self.value(shape.item or Shape(), depth + 1) for _ in range(count)]
        return self.scalar(kind, shape)

    def scalar(self, kind: str, shape: Shape) -> Any:
        """Return a valid value that is no container; for a shape without types anything at all."""
        rng = self.rng
        low = shape.minimum if shape.minimum is not None else -3
        high = shape.maximum if shape.maximum is not None else max(low, 0) + 5000
        match kind:
            case "null":
                return None
            case "boolean":
                return rng.random() < 0.5
            case "integer":
                return rng.choice((int(low), int(high), rng.randint(int(low), int(high))))
            case "number":
                return rng.choice((int(low), int(high), low + (high - low) / 7 + 0.0625))
            case "string" if shape.enum is not None:
                return rng.choice(list(shape.enum))
            case "string" if shape.pattern:
                # Subscripts and dots fit only some of the patterns.
                return rng.choice(NAMES if "[0-9]" not in shape.pattern else PATHS)
            case "string":
                return rng.choice([text for text in TEXTS if len(text) >= (shape.min_length or 0)])
        return copy.deepcopy(rng.choice(ANYTHING))

    def _named(self, name: str) -> Block:
        if name != STEP:
            return self.known.blocks[name]
        types = [t for t in self.known.steps if t != "subworkflow" or self.rng.random() < 0.3]
        block = self.known.step(self.rng.choice(types))
        assert block is not None
        return block


def _change(rng: random.Random, seed: int, sites: list[Site]) -> None:
    """Change one thing in a document: the kind of change first, so that rare ones are not drowned by common ones."""
    maker = Maker(seed ^ rng.getrandbits(30))
    known = catalogue()
    blocks = [s for s in sites if s.block is not None]
    change = rng.choice(("anything", "null", "drop", "unknown", "foreign", "type", "bound", "text", "wrap", "order"))
    match change:
        case "unknown" | "foreign" | "drop" | "type" | "order" if blocks:
            site = rng.choice(blocks)
            mapping, block = site.container[site.key], site.block
            assert block is not None
            if change == "unknown":
                mapping[rng.choice(KEYS)] = maker.scalar("any", Shape())
            elif change == "foreign":
                field = rng.choice(list(rng.choice(list(known.blocks.values())).fields.values()))
                mapping[field.name] = maker.value(field.shape, 4)
            elif change == "drop" and mapping:
                del mapping[rng.choice(list(mapping))]
            elif change == "type" and "type" in mapping:
                mapping["type"] = rng.choice((*known.steps, "routr", "", None, 5, ["llm_call"]))
        case "bound" | "text":
            site = rng.choice(sites)
            shape = site.shape
            if change == "bound" and shape.minimum is not None:
                site.container[site.key] = rng.choice((shape.minimum - 1, shape.minimum, (shape.maximum or 10**9) + 1))
            elif isinstance(site.container[site.key], str):
                text = site.container[site.key]
                site.container[site.key] = rng.choice(
                    (text + ".", text + " ", "." + text, text.upper(), text + "[0]", "", "{" + text + "}")
                )
        case "wrap":
            site = rng.choice(sites)
            value = site.container[site.key]
            site.container[site.key] = rng.choice(([value], {"a": value}, str(value)))
        case "null":
            site = rng.choice(sites)
            site.container[site.key] = None
        case _:
            site = rng.choice(sites)
            site.container[site.key] = maker.scalar("any", Shape())


def sites(known: Catalogue, container: Any, key: Any, shape: Shape) -> Iterator[Site]:
    """Yield every value of a document with the shape it is measured by, as far as the document makes sense."""
    value = container[key]
    kind = "object" if isinstance(value, dict) else "string" if isinstance(value, str) else "array"
    found = known.alternative(shape, kind, value if isinstance(value, dict) else ()) or shape
    block = None
    if isinstance(value, dict) and found.block:
        block = known.step(str(value.get("type"))) if found.block == STEP else known.blocks[found.block]
    yield Site(container, key, found, block)
    if isinstance(value, dict):
        for name in value:
            if block is not None and name in block.fields:
                yield from sites(known, value, name, block.fields[name].shape)
            elif block is None and found.values is not None:
                yield from sites(known, value, name, found.values)
    elif isinstance(value, list) and found.item is not None:
        for at in range(len(value)):
            yield from sites(known, value, at, found.item)
