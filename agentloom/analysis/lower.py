"""From nodes to plain values, checked against the catalogue: the AL1xx findings about shape.

Works on one mapping at a time (a step, or a document's head), in offsets relative to its unit, so that the result can be kept
as long as that unit's text doesn't change. Anchors are transparent: each node is checked once however often it is aliased.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, Located
from agentloom.analysis.symbols import Leaf, occurrences
from agentloom.diagnostics import Finding, Fix
from agentloom.model.catalogue import Block, Shape, catalogue
from agentloom.similar import closest, ranking
from agentloom.syntax.nodes import Alias, Node, Scalar, Sequence
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.resolve import resolve
from agentloom.syntax.tree import Unit
from agentloom.syntax.values import entries, plain_value
from agentloom.text import Span

MOST_ALLOWED_LISTED = 8
"""Allowed keys and values are listed in a message up to this many."""

_TYPE_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
    "object": "a mapping",
    "array": "a list",
}


@dataclass(slots=True)
class _Lowering:
    unit: Unit
    findings: list[Finding] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    memo: dict[tuple[int, int], Any] = field(default_factory=dict)

    def value(self, node: Node, shape: Shape | None, key: str, name: str, owner_key: Scalar | None) -> Any:
        """Return a node's plain value and note what is wrong with it. ``name`` is the field's own word for messages."""
        if isinstance(node, Alias):
            if node.target is None:
                return None
            memo_key = (id(node.target), id(shape))
            if memo_key not in self.memo:
                self.memo[memo_key] = None
                self.memo[memo_key] = self.value(node.target, shape, key, name, owner_key)
            return self.memo[memo_key]
        if isinstance(node, (MappingNode, Sequence)) and node.anchor is not None:
            memo_key = (id(node), id(shape))
            if memo_key in self.memo:
                return self.memo[memo_key]
            self.memo[memo_key] = None
            result = self.memo[memo_key] = self._value(node, shape, key, name, owner_key)
            return result
        return self._value(node, shape, key, name, owner_key)

    def _value(self, node: Node, shape: Shape | None, key: str, name: str, owner_key: Scalar | None) -> Any:
        if shape is None or (not shape.types and not shape.any_of and not shape.marks):
            return plain_value(node)
        if shape.any_of:
            shape = _alternative(node, shape)
        if isinstance(node, Scalar):
            return self._scalar(node, shape, key, name, owner_key)
        if isinstance(node, MappingNode):
            return self._mapping(node, shape, key, name)
        if isinstance(node, Sequence):
            return self._sequence(node, shape, key, name, owner_key)
        return None

    def _scalar(self, node: Scalar, shape: Shape, key: str, name: str, owner_key: Scalar | None) -> Any:
        value = resolve(node)
        kind = type_of(value)
        types = shape.types
        if types and kind not in types and not (kind == "integer" and "number" in types):
            self._wrong_type(node, value, kind, shape, name, owner_key)
            return value
        if kind in ("integer", "number") and name == "version":
            value = node.value  # the text that stands in the file: 1.10 stays 1.10
        if shape.enum is not None and value is not None and value not in shape.enum:
            self._choice(node, shape.enum, name, "AL104")
        self._bounds(node, value, shape, name)
        if shape.marks:
            self.leaves.append(Leaf(node, shape, key, value))
        return value

    def _mapping(self, node: MappingNode, shape: Shape, key: str, name: str) -> Any:
        if shape.types and "object" not in shape.types:
            if "string" in shape.types and looks_like_template(node, self.unit.text):
                self._unquoted(node)
                return plain_value(node)
            self._wrong_type(node, None, "object", shape, name, None)
            return plain_value(node)
        if shape.block == "workflow":
            return plain_value(node)  # an inline child is a document of its own, see ``children``
        if shape.block is not None:
            return self.block(node, catalogue().blocks[shape.block], key)[1]
        if shape.mark("template_deep"):
            self._deep(node, shape, key)
            return plain_value(node)
        if shape.values is None:
            return plain_value(node)
        result: dict[str, Any] = {}
        for key_node, value, _ in entries(node):
            below = f"{key}.{key_node.value}" if key else key_node.value
            result[key_node.value] = self.value(value, shape.values, below, key_node.value, key_node)
        return result

    def _sequence(self, node: Sequence, shape: Shape, key: str, name: str, owner_key: Scalar | None) -> Any:
        if shape.types and "array" not in shape.types:
            self._wrong_type(node, None, "array", shape, name, owner_key)
            return plain_value(node)
        if shape.mark("template_deep"):
            self._deep(node, shape, key)
            return plain_value(node)
        if shape.min_items is not None and len(node.items) < shape.min_items:
            self._add("AL106", _head(node.span, owner_key), f"`{name}` is empty; give at least {shape.min_items} item")
        return [self.value(item, shape.item, f"{key}.{at}", name, None) for at, item in enumerate(node.items)]

    def _deep(self, node: Node, shape: Shape, key: str) -> None:
        """Collect every scalar below a field whose texts at any depth are templates."""
        leaf_shape = Shape(marks=shape.marks)
        todo: list[tuple[Node, str]] = [(node, key)]
        seen: set[int] = set()
        while todo:
            at, path = todo.pop()
            if isinstance(at, Alias):
                if at.target is None or id(at.target) in seen:
                    continue
                seen.add(id(at.target))
                at = at.target
            if isinstance(at, Alias):
                continue
            if isinstance(at, Scalar):
                self.leaves.append(Leaf(at, leaf_shape, path, resolve(at)))
            elif isinstance(at, Sequence):
                todo.extend((item, f"{path}.{i}") for i, item in enumerate(at.items))
            else:
                if looks_like_template(at, self.unit.text):
                    self._unquoted(at)
                    continue
                found = entries(at)
                names = {k.value for k, _, _ in found}
                if names == {"value", "template"}:
                    switch = next(v for k, v, _ in found if k.value == "template")
                    if isinstance(switch, Scalar) and resolve(switch) is False:
                        continue  # the escape hatch: this text is not a template
                todo.extend((value, f"{path}.{k.value}") for k, value, _ in found)

    def _unquoted(self, node: MappingNode) -> None:
        source = self.unit.text[node.span.start : node.span.end]
        fixes = (Fix("quote it", edits.set_source(node, f'"{source}"'), safe=False),) if '"' not in source else ()
        self._add(
            "AL011", node.span, f"`{_short(source)}` is a mapping to YAML, not a template; put quotes around it", fixes
        )

    def block(self, node: MappingNode, block: Block, key: str) -> tuple[dict[str, Located], dict[str, Any]]:
        """Check a mapping with known keys; return where its fields are, and its plain values."""
        fields, data = self.fields(node)
        self.known(node, block, fields, data, key, frozenset())
        return fields, data

    def fields(self, node: MappingNode) -> tuple[dict[str, Located], dict[str, Any]]:
        """Return a mapping's fields after merge keys; values are filled in by ``known``."""
        found: dict[str, Located] = {}
        via: Span | None = None
        for key_node, value, inherited in entries(node):
            if inherited and via is None:
                via = _merge_span(node)
            found[key_node.value] = Located(key_node, value, via if inherited else None)
        return found, {}

    def known(
        self,
        node: MappingNode,
        block: Block,
        fields: dict[str, Located],
        data: dict[str, Any],
        key: str,
        skip: frozenset[str],
    ) -> None:
        """Check fields against a block: values, unknown keys, missing ones. ``skip`` names keys checked elsewhere."""
        unknown: list[tuple[str, Located]] = []
        for name, located in fields.items():
            described = block.fields.get(name)
            below = f"{key}.{name}" if key else name
            if name in skip:
                data[name] = plain_value(located.value)
            elif described is None:
                unknown.append((name, located))
                data[name] = plain_value(located.value)
            else:
                data[name] = self.value(located.value, described.shape, below, name, located.key)
        mistyped: set[str] = set()
        for name, located in unknown:
            near = self._unknown_key(node, block, name, located, fields)
            if near is not None:
                mistyped.add(near)
        for name, described in block.fields.items():
            if described.required and name not in fields and name not in skip and name not in mistyped:
                self._missing(node, block, name)

    def _unknown_key(
        self, node: MappingNode, block: Block, name: str, located: Located, fields: Mapping[str, Located]
    ) -> str | None:
        """Report a key that doesn't belong; return the missing field that was probably meant."""
        span = located.via or located.key.span
        free = [field for field in block.fields if field not in fields]
        near = closest(name, free)
        home = _home_of(name, block) if near is None or near.casefold() != name.casefold() else None
        if home is not None and (near is None or home.exact):
            fixes: tuple[Fix, ...] = ()
            if home.under is not None and located.via is None:
                moved = edits.move_under(self.unit.text, node, located.key, located.value, home.under, fields)
                if moved is not None:
                    fixes = (Fix(f"move `{name}` under `{home.under}`", moved, safe=False),)
            self._add("AL108", span, f"`{name}` {home.words}", fixes)
            return None
        if near is not None:
            fixes = (
                (Fix(f"change to `{near}`", edits.rename_key(located.key, near), safe=False),)
                if located.via is None
                else ()
            )
            self._add("AL102", span, f"unknown key `{name}` {_inside(block)}; did you mean `{near}`?", fixes)
            return near
        allowed = list(block.fields)
        if len(allowed) <= MOST_ALLOWED_LISTED:
            cure = "allowed are " + ", ".join(f"`{a}`" for a in allowed)
        else:
            cure = "remove it"
        fixes = ()
        if located.via is None:
            gone = edits.remove_entry(self.unit.text, node, located.key, located.value)
            fixes = (Fix(f"remove `{name}`", gone, safe=False),) if gone else ()
        self._add("AL102", span, f"unknown key `{name}` {_inside(block)}; {cure}", fixes)
        return None

    def _missing(self, node: MappingNode, block: Block, name: str) -> None:
        described = block.fields[name]
        span = node.entries[0].key.span if node.entries else node.span
        skeleton = edits.add_entry(self.unit.text, node, name, edits.skeleton(described))
        fixes = (Fix(f"add `{name}`", skeleton, safe=False),) if skeleton else ()
        self._add("AL101", _first_line(span, self.unit.text), f"{_subject(block)} needs `{name}`; add it", fixes)

    def _choice(self, node: Scalar, enum: Mapping[str, str], name: str, code: str) -> None:
        word = node.value
        near = ranking(word, enum)
        if near:
            message = f"`{word}` is no {_noun(name)}; did you mean `{near[0]}`?"
        else:
            message = f"`{word}` is no {_noun(name)}; choose from " + ", ".join(f"`{e}`" for e in enum)
        fixes = tuple(
            Fix(f"change to `{choice}`", edits.replace_value(node, choice), safe=False)
            for choice in (near or list(enum))
        )
        self._add(code, node.span, message, fixes)

    def _bounds(self, node: Scalar, value: Any, shape: Shape, name: str) -> None:
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, (int, float)):
            low, high, above = shape.minimum, shape.maximum, shape.exclusive_minimum
            if (
                (low is not None and not value >= low)
                or (high is not None and not value <= high)
                or (above is not None and not value > above)
            ):
                self._add("AL106", node.span, f"`{name}` is {node.value}; it must be {_range(low, high, above)}")
            elif value != value or value in (float("inf"), float("-inf")):
                self._add("AL106", node.span, f"`{name}` is {node.value}; it must be a finite number")
        elif isinstance(value, str):
            if shape.min_length is not None and len(value) < shape.min_length:
                self._add("AL106", node.span, f"`{name}` is empty; give it a text")
            elif shape.pattern is not None and not _matches(shape.pattern, value):
                self._malformed(node, value, shape, name)

    def _malformed(self, node: Scalar, value: str, shape: Shape, name: str) -> None:
        better = edits.legal_name(value, dotted=shape.mark("state_write") is not None)
        fixes: tuple[Fix, ...] = ()
        cure = "use letters, digits, `_` and `-`"
        if better and _matches(shape.pattern or "", better):
            fixes = (Fix(f"change to `{better}`", edits.replace_value(node, better), safe=False),)
            cure = f"for example `{better}`"
        self._add("AL107", node.span, f"`{value}` can't be read back in a template as {_noun(name)}; {cure}", fixes)

    def _wrong_type(self, node: Node, value: Any, kind: str, shape: Shape, name: str, owner_key: Scalar | None) -> None:
        wanted = [t for t in shape.types if t != "null"] or list(shape.types)
        words = " or ".join(_TYPE_WORDS[t] for t in wanted if not (t == "integer" and "number" in wanted))
        if kind == "null" and isinstance(node, Scalar) and not node.raw:
            span = owner_key.span if owner_key is not None else node.span
            self._add("AL105", _head(span, owner_key), f"`{name}` has no value yet; give it {words}")
            return
        span = node.span
        fixes: list[Fix] = []
        if isinstance(node, Scalar):
            if "string" in wanted and node.style == "plain" and kind != "null":
                fixes.append(Fix("quote it", edits.quote_source(node), safe=False))
            if node.style in ("single", "double") and kind == "string":
                inner = resolve(Scalar(node.span, node.value, "plain", node.value))
                inner_kind = type_of(inner)
                if inner_kind in wanted or (inner_kind == "integer" and "number" in wanted):
                    fixes.append(Fix("remove the quotes", edits.set_source(node, node.value), safe=False))
            item = shape.item
            if "array" in wanted and item is not None and (not item.types or kind in item.types):
                fixes.append(Fix("make it a list", edits.wrap_in_list(node), safe=False))
            shown = f"`{_short(node.value)}`" if node.value else "nothing"
            message = f"`{name}` is {shown}, {_article(kind)}; it must be {words}"
            if "\n" in node.raw:
                span = Span(node.span.start, node.span.start + max(1, node.raw.find("\n")))
        else:
            message = f"`{name}` is {_TYPE_WORDS[kind]}; it must be {words}"
            span = _head(node.span, owner_key)
        self._add("AL105", span, message, tuple(fixes))

    def _add(self, code: str, span: Span, message: str, fixes: tuple[Fix, ...] = ()) -> None:
        self.findings.append(Finding(code, span, message, fixes=fixes))


def lower_step(node: MappingNode, unit: Unit) -> Facts:
    """Return the facts of one step."""
    low = _Lowering(unit)
    fields, data = low.fields(node)
    known = catalogue()
    type_at = fields.get("type")
    type_value = plain_value(type_at.value) if type_at else None
    block = known.step(type_value) if isinstance(type_value, str) else None
    if block is not None:
        low.known(node, block, fields, data, "", frozenset())
    else:
        _step_of_unknown_type(low, node, fields, data)
    return _facts(low, node, block, fields, data)


def _step_of_unknown_type(low: _Lowering, node: MappingNode, fields: dict[str, Located], data: dict[str, Any]) -> None:
    """Check what every step has; the rest can't be judged before the type is known."""
    known = catalogue()
    any_block = known.blocks[next(iter(known.steps.values()))]
    common = {name: any_block.fields[name] for name in known.common if name != "type"}
    for name, located in fields.items():
        described = common.get(name)
        if described is not None:
            data[name] = low.value(located.value, described.shape, name, name, located.key)
        else:
            data[name] = plain_value(located.value)
    general = Block("step", "a step", "", {**common, "type": any_block.fields["type"]})
    type_at = fields.get("type")
    if type_at is None:
        low._missing(node, general, "type")
    elif isinstance(type_at.value, Scalar) and isinstance(resolve(type_at.value), str):
        texts = {type_: known.blocks[name].description for type_, name in known.steps.items()}
        low._choice(type_at.value, texts, "type", "AL103")
    else:
        node_at = type_at.value.target if isinstance(type_at.value, Alias) else type_at.value
        low._wrong_type(
            node_at or type_at.value, None, _kind_of(node_at), Shape(types=("string",)), "type", type_at.key
        )
    if "id" not in fields:
        low._missing(node, general, "id")


def lower_head(node: MappingNode, unit: Unit, block_name: str, skip: frozenset[str]) -> Facts:
    """Return the facts of a document's top mapping; ``skip`` names the keys that are read elsewhere (`steps`)."""
    low = _Lowering(unit)
    fields, data = low.fields(node)
    block = catalogue().blocks[block_name]
    low.known(node, block, fields, data, "", skip)
    return _facts(low, node, block, fields, data)


def empty_head(unit: Unit) -> Facts:
    """Return the facts of a document that has no mapping at the top."""
    node = MappingNode(Span(0, 0), ())
    return Facts(node=node, unit=unit, block=None, fields={}, data={}, findings=(), leaves=(), occurrences=())


def _facts(
    low: _Lowering, node: MappingNode, block: Block | None, fields: dict[str, Located], data: dict[str, Any]
) -> Facts:
    return Facts(
        node=node,
        unit=low.unit,
        block=block,
        fields=fields,
        data=data,
        findings=tuple(low.findings),
        leaves=tuple(low.leaves),
        occurrences=tuple(occurrences(low.leaves)),
    )


def type_of(value: Any) -> str:
    """Return JSON Schema's word for a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def looks_like_template(node: Node, text: str) -> bool:
    """Tell whether a flow mapping was surely meant as a template: ``{state.x}``, ``{name}``, one key without a value."""
    if not isinstance(node, MappingNode) or not node.flow or len(node.entries) != 1:
        return False
    key, value = node.entries[0].key, node.entries[0].value
    if not isinstance(key, Scalar) or not isinstance(value, Scalar) or value.raw:
        return False
    inner = text[node.span.start + 1 : node.span.end - 1]
    return ":" not in inner and "\n" not in inner and key.style == "plain"


def _kind_of(node: Node | None) -> str:
    if isinstance(node, Scalar):
        return type_of(resolve(node))
    return "array" if isinstance(node, Sequence) else "object" if isinstance(node, MappingNode) else "null"


def _alternative(node: Node, shape: Shape) -> Shape:
    """Return the alternative that fits a node's kind; the first one when none does."""
    kind = _kind_of(node.target if isinstance(node, Alias) else node)
    for option in shape.any_of:
        if not option.types or kind in option.types or (kind == "integer" and "number" in option.types):
            return option
    types = tuple(dict.fromkeys(t for option in shape.any_of for t in option.types))
    return Shape(types=types)


class _Home(NamedTuple):
    words: str
    exact: bool
    under: str | None = None


def _home_of(name: str, block: Block) -> _Home | None:
    """Tell where a key that doesn't belong to a block would belong."""
    known = catalogue()
    for field_name, described in block.fields.items():
        inner = described.shape.block
        if inner and inner != block.name and inner != known.workflow and name in known.blocks[inner].fields:
            return _Home(f"belongs under `{field_name}`", True, field_name)
    if block.tag is not None:
        owners = [type_ for type_, step in known.steps.items() if name in known.blocks[step].fields]
        if owners:
            kinds = " or ".join(f"`{owner}`" for owner in owners[:3])
            article = "an" if owners[0][0] in "ae" or owners[0] == "llm_call" else "a"
            return _Home(f"belongs to {article} {kinds} step, this is {_step_words(block.tag)}", True)
        if name in known.blocks[known.workflow].fields:
            return _Home("belongs at the top level of the file", True)
        config = known.blocks[known.workflow].fields["config"].shape.block
        if config and name in known.blocks[config].fields:
            return _Home("belongs under the top-level `config`", True)
    return None


def _inside(block: Block) -> str:
    """Return where a key stands, in words."""
    if block.tag is not None:
        return f"in {_step_words(block.tag)}"
    if block.name in ("workflow", "agent"):
        return f"at the top of the {'file' if block.name == 'workflow' else 'agent'}"
    return f"in `{block.name}`" if block.name != "step" else "in a step"


def _subject(block: Block) -> str:
    """Return what a block is, in words that begin a sentence."""
    if block.tag is not None:
        return _step_words(block.tag)
    if block.name in ("workflow", "agent", "step", "condition"):
        return {"workflow": "the file", "agent": "an agent", "step": "a step", "condition": "a condition"}[block.name]
    return f"`{block.name}`"


def _step_words(tag: str) -> str:
    article = "an" if tag[0] in "ae" or tag == "llm_call" else "a"
    return f"{article} `{tag}` step"


def _merge_span(node: MappingNode) -> Span:
    for entry in node.entries:
        if isinstance(entry.key, Scalar) and entry.key.value == "<<" and entry.key.style == "plain":
            return entry.value.span if isinstance(entry.value, Alias) else entry.key.span
    return node.span


def _head(span: Span, owner_key: Scalar | None) -> Span:
    """Return where a whole collection's fault is shown: at its key if it has one."""
    return owner_key.span if owner_key is not None else span


def _first_line(span: Span, text: str) -> Span:
    cut = text.find("\n", span.start, span.end)
    return span if cut < 0 else Span(span.start, cut)


def _noun(name: str) -> str:
    return {"type": "step type", "id": "a step id", "output": "a state key"}.get(name, f"`{name}`")


def _article(kind: str) -> str:
    return {"null": "null", "boolean": "true or false"}.get(kind, _TYPE_WORDS[kind])


def _range(low: float | None, high: float | None, above: float | None) -> str:
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    if above is not None:
        return f"above {above:g}" + (f" and at most {high:g}" if high is not None else "")
    return f"{low:g} or more" if low is not None else f"{high:g} or less"


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value) is not None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "…"
