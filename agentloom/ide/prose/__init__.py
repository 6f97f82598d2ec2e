"""What editors say about a thing, in hovers and beside completions: words as plain data, shown as Markdown or as plain text."""
