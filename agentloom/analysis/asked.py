"""Labels that a prompt demands: "Classify as billing or technical. Answer with one word."

Prose is read with caution: only one list of single words counts, in a sentence that asks for an answer, in a prompt that asks for nothing
but one of them. Whatever is less clear than that demands nothing.
"""

from __future__ import annotations

import re

_STRICT = r"\b(?:(?:exactly |only )?one (?:single )?word(?: only)?|a single word|(?:exactly |only )?one of(?: these| the following)?(?: words| labels)?|nothing else)\b"
_ASKS = r"\b(?:answer|reply|respond|return|output|classify|label|sort|choose|pick|say|decide|write)\b"
_QUOTE = "[`'\"“”]?"
_WORD = rf"{_QUOTE}[A-Za-z][\w-]*{_QUOTE}"
_BEFORE = r"(?:\b(?:as|with|by|into|of|answer|reply|say|is)\s+|[:,]\s*)"
_BEHIND = r"(?=\s*(?:[.!?;)]|$))"
_LISTS = (
    rf"{_BEFORE}(?P<list>{_WORD}(?:\s*,\s*{_WORD})*\s*,?\s+or\s+{_WORD}){_BEHIND}",
    rf"(?:[:,]|\bof)\s*(?P<list>{_WORD}(?:\s*[,|/]\s*{_WORD})+){_BEHIND}",
)
LONGEST = 400
"""Characters of a sentence that is looked at: longer ones ask for nothing in a clear way."""

_SENTENCE = r"(?<=[.!?])\s+|\n+"


def demanded_labels(prompt: str) -> tuple[str, ...]:
    """Return the labels of which a prompt (placeholders and all) demands exactly one; none when it isn't clear about that."""
    if not re.search(_STRICT, prompt, re.IGNORECASE):
        return ()
    # What only says how many, and what a placeholder will hold, is no label.
    text = re.sub(_STRICT, ":", re.sub(r"\{[^{}]*\}", ":", prompt), flags=re.IGNORECASE)
    found: set[tuple[str, ...]] = set()
    for sentence in re.split(_SENTENCE, text):
        if len(sentence) > LONGEST or re.search(_ASKS, sentence, re.IGNORECASE) is None:
            continue
        for pattern in _LISTS:
            match = re.search(pattern, sentence.strip(), re.IGNORECASE)
            if match is not None:
                words = re.split(r"\s*[,|/]\s*(?:or\s+)?|\s+or\s+", match["list"])
                found.add(tuple(dict.fromkeys(word.strip("`'\"“”") for word in words if word)))
                break
    if len(found) != 1:
        return ()
    (labels,) = found
    return labels if len(labels) > 1 else ()
