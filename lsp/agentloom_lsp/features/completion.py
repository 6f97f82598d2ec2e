"""`textDocument/completion` and `completionItem/resolve`: what may stand at the cursor, said as the client can take it."""

from __future__ import annotations

import re
from typing import Any

from lsprotocol import types

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion.complete import Completion, answer
from agentloom.ide.completion.documentation import explain
from agentloom.ide.completion.insertion import insertion
from agentloom.ide.completion.items import Item, ItemKind
from agentloom_lsp.asking import Asked, asked, asked_before
from agentloom_lsp.client import Client, find
from agentloom_lsp.session import Session

KINDS: dict[ItemKind, types.CompletionItemKind] = {
    "key": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "step": types.CompletionItemKind.Reference,
    "snippet": types.CompletionItemKind.Snippet,
    "state": types.CompletionItemKind.Variable,
    "function": types.CompletionItemKind.Function,
    "keyword": types.CompletionItemKind.Keyword,
    "tool": types.CompletionItemKind.Method,
    "agent": types.CompletionItemKind.Class,
    "model": types.CompletionItemKind.Constant,
    "provider": types.CompletionItemKind.Module,
    "file": types.CompletionItemKind.File,
    "folder": types.CompletionItemKind.Folder,
    "reference": types.CompletionItemKind.Reference,
    "code": types.CompletionItemKind.EnumMember,
}
LAST_OF_ALL = 18
"""The last kind that every client knows; those that know more say which."""
AS_IT_IS, ADJUST = 1, 2
SNIPPET = 2
DEPRECATED = 1
SUGGEST = {"title": "Suggest", "command": "editor.action.triggerSuggest"}


async def completion(session: Session, params: types.CompletionParams) -> dict[str, Any] | None:
    """`textDocument/completion`."""
    found = await asked_before(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> dict[str, Any]:
        return listed(session.client, found, answer(found.document, offset, session.project))

    return await session.worker.submit(work)


async def resolve(session: Session, params: types.CompletionItem) -> dict[str, Any]:
    """`completionItem/resolve`: adds the documentation."""
    said: dict[str, Any] = session.unstructure(params)
    data = said.get("data")
    about, uri = find(data, "about"), find(data, "uri")
    found = await asked(session, types.TextDocumentIdentifier(uri)) if isinstance(uri, str) else None
    document = found.document if found is not None else None
    text = explain(tuple(map(str, about)), document) if isinstance(about, list) else ""
    if text:
        said["documentation"] = documentation(session.client, text)
    return said


def listed(client: Client, found: Asked, completed: Completion) -> dict[str, Any]:
    """Return the list in the protocol's JSON form.

    There is one range, which is the whole word: half of an old key or choice behind a new one is never meant.
    """
    items = completed.items
    said: dict[str, Any] = {"isIncomplete": not completed.complete, "items": []}
    shared = items[0].edit.span if items and "editRange" in client.item_defaults else None
    if shared is not None:
        said["itemDefaults"] = {"editRange": found.places.range(shared)}
    source = found.document.source.text
    for number, item in enumerate(items):
        put = insertion(item, source, client.snippets, AS_IT_IS in client.insert_modes)
        if put is None:
            continue
        entry: dict[str, Any] = {"label": item.label, "kind": _kind(client, item), "sortText": f"{number:04}"}
        if item.edit.span == shared:
            entry["textEditText"] = put.text
        else:
            entry["textEdit"] = {"newText": put.text, "range": found.places.range(item.edit.span)}
        if put.snippet:
            entry["insertTextFormat"] = SNIPPET
        if "\n" in put.text or "\r" in put.text:
            mode = ADJUST if put.relative else AS_IT_IS
            if mode in client.insert_modes:
                entry["insertTextMode"] = mode
        _describe(client, found.document, item, entry)
        if item.additional:
            entry["additionalTextEdits"] = [
                {"range": found.places.range(edit.span), "newText": edit.text} for edit in item.additional
            ]
        said["items"].append(entry)
    return said


def _describe(client: Client, document: WorkflowDocument, item: Item, entry: dict[str, Any]) -> None:
    """Add what is shown of an item, and what happens after it."""
    if item.detail:
        entry["detail"] = item.detail
        if client.label_details:
            entry["labelDetails"] = {"description": item.detail}
    if item.filter:
        entry["filterText"] = item.filter
    if item.preselect:
        entry["preselect"] = True
    if item.deprecated and client.deprecated_items:
        entry["tags"] = [DEPRECATED]
    if item.retrigger and client.suggests:
        entry["command"] = SUGGEST
    if item.about and client.resolves_documentation:
        entry["data"] = {"uri": document.source.uri, "about": item.about}
    elif text := explain(item.about, document):
        entry["documentation"] = documentation(client, text)


def _kind(client: Client, item: Item) -> int:
    kind = KINDS[item.kind].value
    if kind <= LAST_OF_ALL or kind in client.item_kinds:
        return kind
    return types.CompletionItemKind.Value.value


def documentation(client: Client, text: str) -> dict[str, str] | str:
    """Return Markdown as the client shows it."""
    return {"kind": "markdown", "value": text} if client.markdown_items else unmarked(text)


def unmarked(text: str) -> str:
    """Return Markdown as text for a screen that shows none."""
    text = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", lambda m: f"{m[1]} ({m[2]})", text)
    text = re.sub(r"(?m)^```.*\n?", "", text)
    return re.sub(r"\*\*|(?<!\\)`|\\(?=[^\w\s])", "", text)
