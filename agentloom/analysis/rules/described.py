"""Texts of the rules whose findings come from the YAML reader, the shape check or the driver: summary, why, cure."""

TEXTS: dict[str, str] = {
    "AL001": """The text is not YAML at this place.

An open quote, a missing colon, a wrong indentation. Everything around the broken line is still read and checked, so one
half-typed line hides nothing else.

Follow the message; where quotes are missing, the fix adds them.
""",
    "AL002": """A mapping has the same key twice.

YAML readers disagree about which one counts, and one of the two values would be lost in silence.

Remove one of them. Two merge keys become one list: `<<: [*a, *b]`.
""",
    "AL003": """An alias names an anchor that the document doesn't have above it.

`*name` repeats the value marked with `&name` further up.

Correct the name, or add the anchor.
""",
    "AL004": """An alias lies inside the value that its own anchor marks.

Such a value would contain itself, without end.

Move the alias out of the anchored value.
""",
    "AL005": """Aliases of aliases expand to far more values than the file shows.

A few lines can stand for millions of values; files like that are refused before they cost time and memory.

Write the values out, or use fewer levels of aliases.
""",
    "AL006": """A line is indented with a tab.

YAML allows only spaces for indentation.

Use spaces; the fix puts the file's own indentation there.
""",
    "AL007": """The file holds more than one YAML document.

Only the first document, up to the `---` line, is a workflow; what follows would be ignored in silence.

Remove the rest, or move it to a file of its own.
""",
    "AL008": """The file is no mapping at the top: it is empty, a list, or a single text.

A workflow is a mapping that has at least a `name` and a list of `steps`.

Start with `name:` and `steps:`.
""",
    "AL011": """A template stands without quotes, and YAML reads its braces as a mapping.

`prompt: {state.x}` is not the text `{state.x}` but a mapping with one key.

Put quotes around the whole value.
""",
    "AL101": """A key that is needed is missing.

Without it the step, or the file, can't be run.

Add the key; the fix inserts one to fill in.
""",
    "AL102": """A key is not known here.

Unknown keys are refused, so that a misspelled one is never ignored in silence.

Correct the spelling, or remove the key.
""",
    "AL103": """A step has a `type` that doesn't exist.

There are seven types: `llm_call`, `router`, `tool`, `subworkflow`, `approval_gate`, `embed` and `agent`.

Choose one of them.
""",
    "AL104": """A value is not among the ones that can be chosen here.

The key takes only certain words.

Choose one of those that the message lists.
""",
    "AL105": """A value is of the wrong type: a text where a number is meant, one value where a list is meant, and the like.

Values are never converted in silence: `"0.5"` is a text, `0.5` a number.

Write the value in the right form; the fix does it where there is only one way.
""",
    "AL106": """A number, a list or a text is outside its bounds.

A run would certainly go wrong with it: a negative budget or number of retries, a temperature above 2, a list without an item.

Choose a value within the bounds that the message gives.
""",
    "AL108": """A key stands at the wrong place: it belongs to another type of step, or to another block.

For example `max_retries` belongs under `retry`, and `prompt` to an `llm_call`.

Move it there; the fix does so where it is one line.
""",
    "AL900": """A check crashed; this is a fault of agentloom, not of the file.

The other checks ran. Please report the file and what was printed to the log.
""",
    "AL901": """A suppression comment names a code that doesn't exist.

It hides nothing.

Correct the code; `agentloom explain --list` shows all of them.
""",
    "AL902": """A suppression comment hides nothing.

What it once hid is gone, or can't be hidden: errors that refuse the run always show.

Remove the comment.
""",
}
