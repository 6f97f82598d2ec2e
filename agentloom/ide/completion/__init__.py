"""Completion: where the cursor is in half-typed text (`scan`, `where`), and what may stand there.

The way from a key press to a list:

1. ``scan`` reads the lines of one step (or one top-level entry) around the cursor, without the parser, so that it works in text
   that is half typed, and tells the mappings and lists around the cursor and what the cursor stands in.
2. ``where`` adds what the catalogue says about the place: the block whose keys are meant, the field, the shape of the value.
3. ``sources`` is the table of those who offer something for a kind of place; each yields ``Item`` values.
4. ``complete`` asks them all; ``documentation`` explains an item when the editor shows it.
"""
