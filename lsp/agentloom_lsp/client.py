"""What the client told about itself, read from its `initialize` request; nonsense counts as not said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentloom_lsp.convert import Encoding
from agentloom_lsp.uris import from_path

ITEM = "textDocument.completion.completionItem"
OF_VS_CODE = "marked"
"""What the library of VS Code's clients calls its reader of Markdown. Whoever uses it has the command that asks for completions again."""


FILE_OPERATIONS = ("didCreate", "didRename", "didDelete")
"""What the user does to files in the editor, and clients can tell."""


@dataclass(frozen=True, slots=True)
class Client:
    """What a client can do. ``pulls``: it asks for diagnostics, so they aren't sent unasked.

    ``folders`` are the workspace folders' URIs as spelled; ``options`` what the user wrote into the client's set-up.
    """

    name: str = ""
    process_id: int | None = None
    encoding: Encoding = Encoding.UTF16
    folders: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    pulls: bool = False
    related: bool = False
    unnecessary: bool = False
    code_pages: bool = False
    data: bool = False
    literal_actions: bool = False
    resolves_actions: bool = False
    disabled_actions: bool = False
    creates_files: bool = False
    versioned_edits: bool = False
    configuration: bool = False
    register_configuration: bool = False
    register_watching: bool = False
    relative_watching: bool = False
    makes_progress: bool = False
    file_operations: frozenset[str] = frozenset()
    refreshes_diagnostics: bool = False
    symbol_trees: bool = False
    definition_links: bool = False
    prepares_renames: bool = False
    asks_before_moves: bool = False
    most_folds: int | None = None
    link_tooltips: bool = False
    refreshes_hints: bool = False
    refreshes_lenses: bool = False
    shows_actions: bool = False
    shows_documents: bool = False
    run_events: bool = False
    markdown_hovers: bool = False
    snippets: bool = False
    markdown_items: bool = False
    label_details: bool = False
    deprecated_items: bool = False
    resolves_documentation: bool = False
    insert_modes: frozenset[int] = frozenset()
    item_kinds: frozenset[int] = frozenset()
    item_defaults: frozenset[str] = frozenset()
    suggests: bool = False


def read_client(params: Any) -> Client:
    """Return the client described by the parameters of `initialize`, as plain JSON. Never raises."""

    def told(path: str) -> Any:
        return find(params, f"capabilities.{path}")

    def yes(path: str) -> bool:
        return told(path) is True

    def lists(path: str, word: str) -> bool:
        found = told(path)
        return isinstance(found, list) and word in found

    def numbers(path: str) -> frozenset[int]:
        found = told(path)
        return frozenset(each for each in found if isinstance(each, int)) if isinstance(found, list) else frozenset()

    def words(path: str) -> frozenset[str]:
        found = told(path)
        return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()

    def either(name: str) -> Any:
        pushed = told(f"textDocument.publishDiagnostics.{name}")
        return pushed if pushed is not None else told(f"textDocument.diagnostic.{name}")

    process, tags = find(params, "processId"), either("tagSupport.valueSet")
    folds = told("textDocument.foldingRange.rangeLimit")
    options, name = find(params, "initializationOptions"), find(params, "clientInfo.name")
    return Client(
        name=name if isinstance(name, str) else "",
        process_id=process if isinstance(process, int) and process > 0 else None,
        encoding=choose_encoding(told("general.positionEncodings")),
        folders=_folders(params),
        options=options if isinstance(options, dict) else {},
        pulls=isinstance(told("textDocument.diagnostic"), dict),
        related=either("relatedInformation") is True,
        unnecessary=isinstance(tags, list) and 1 in tags,
        code_pages=either("codeDescriptionSupport") is True,
        data=either("dataSupport") is True,
        literal_actions=isinstance(told("textDocument.codeAction.codeActionLiteralSupport"), dict),
        resolves_actions=yes("textDocument.codeAction.dataSupport")
        and lists("textDocument.codeAction.resolveSupport.properties", "edit"),
        disabled_actions=yes("textDocument.codeAction.disabledSupport"),
        creates_files=yes("workspace.workspaceEdit.documentChanges")
        and lists("workspace.workspaceEdit.resourceOperations", "create"),
        versioned_edits=yes("workspace.workspaceEdit.documentChanges"),
        configuration=yes("workspace.configuration"),
        register_configuration=yes("workspace.didChangeConfiguration.dynamicRegistration"),
        register_watching=yes("workspace.didChangeWatchedFiles.dynamicRegistration"),
        relative_watching=yes("workspace.didChangeWatchedFiles.relativePatternSupport"),
        makes_progress=yes("window.workDoneProgress"),
        file_operations=frozenset(name for name in FILE_OPERATIONS if yes(f"workspace.fileOperations.{name}")),
        refreshes_diagnostics=yes("workspace.diagnostics.refreshSupport"),
        snippets=yes(f"{ITEM}.snippetSupport"),
        markdown_items=lists(f"{ITEM}.documentationFormat", "markdown"),
        label_details=yes(f"{ITEM}.labelDetailsSupport"),
        deprecated_items=1 in numbers(f"{ITEM}.tagSupport.valueSet"),
        resolves_documentation=lists(f"{ITEM}.resolveSupport.properties", "documentation"),
        insert_modes=numbers(f"{ITEM}.insertTextModeSupport.valueSet"),
        item_kinds=numbers("textDocument.completion.completionItemKind.valueSet"),
        item_defaults=words("textDocument.completion.completionList.itemDefaults"),
        suggests=told("general.markdown.parser") == OF_VS_CODE,
        markdown_hovers=lists("textDocument.hover.contentFormat", "markdown"),
        symbol_trees=yes("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"),
        prepares_renames=yes("textDocument.rename.prepareSupport"),
        asks_before_moves=yes("workspace.fileOperations.willRename"),
        definition_links=yes("textDocument.definition.linkSupport"),
        most_folds=folds if isinstance(folds, int) and folds >= 0 else None,
        link_tooltips=yes("textDocument.documentLink.tooltipSupport"),
        refreshes_hints=yes("workspace.inlayHint.refreshSupport"),
        refreshes_lenses=yes("workspace.codeLens.refreshSupport"),
        shows_actions=isinstance(told("window.showMessage"), dict),
        shows_documents=yes("window.showDocument.support"),
        run_events=yes("experimental.agentloom.runEvents"),
    )


def choose_encoding(offered: Any) -> Encoding:
    """Return the first encoding of the client's list that is one; UTF-16, which every client speaks, when there is none."""
    known = {encoding.value: encoding for encoding in Encoding}
    for name in offered if isinstance(offered, list) else ():
        if isinstance(name, str) and name in known:
            return known[name]
    return Encoding.UTF16


def find(data: Any, path: str) -> Any:
    """Return what stands at a dotted path in plain JSON; None when there is nothing."""
    for name in path.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def _folders(params: Any) -> tuple[str, ...]:
    listed = find(params, "workspaceFolders")
    if isinstance(listed, list):
        found = tuple(uri for folder in listed if isinstance(uri := find(folder, "uri"), str) and uri)
        if found:
            return found
    for name in ("rootUri", "rootPath"):
        root = find(params, name)
        if isinstance(root, str) and root:
            return (root if name == "rootUri" else from_path(root),)
    return ()
