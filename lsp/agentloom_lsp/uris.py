"""Names of documents: what two spellings of one URI have in common, and URIs for paths.

Clients write one file in several ways: ``file:///c%3A/a`` and ``file:///C:/a``, ``%20`` or a blank, ``a/../b``. Documents are
kept under ``key``; what goes back to the client is always its own spelling.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from pathlib import PurePath, PurePosixPath
from urllib.parse import quote, unquote

PAST = frozenset(
    [
        "git",
        "gitfs",
        "gitlens",
        "review",
        "pr",
        "scm",
        "vscode-scm",
        "vscode-local-history",
        "timeline",
        "conflictresolution",
        "svn",
        "hg",
        "fugitive",
        "diffview",
    ]
)
"""Schemes of old versions, shown beside the file of today."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_DRIVE = re.compile(r"/?([A-Za-z]):(?=[/\\]|$)")
_KEPT = "/!$&'()*+,;=:@~-._"


def key(uri: str) -> str:
    """Return the name under which all spellings of one URI meet; a plain path counts as a `file:` URI."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return _file_key("", uri)
    if scheme[1].lower() != "file":
        return f"{scheme[1].lower()}:{unquote(uri[scheme.end() :])}"
    rest = uri[scheme.end() :]
    if not rest.startswith("//"):
        return _file_key("", unquote(rest))
    host, slash, path = rest[2:].partition("/")
    return _file_key("" if host.lower() == "localhost" else unquote(host).lower(), unquote(slash + path))


def path_in(uri: str) -> PurePosixPath | None:
    """Return the path that stands in a URI of any scheme, for looking at its name; None when there is none."""
    scheme = _SCHEME.match(uri)
    rest = uri[scheme.end() :] if scheme else uri
    text = unquote(re.split("[?#]", rest, maxsplit=1)[0])
    return PurePosixPath(text) if text.strip("/") else None


def name_in(uri: str) -> str:
    """Return the last name in a URI, for people."""
    path = path_in(uri)
    return path.name if path is not None and path.name else uri


def is_past(uri: str) -> bool:
    """Tell whether a URI means a file as it was at some time, and not one that anybody can mend."""
    scheme = _SCHEME.match(uri)
    return scheme is not None and scheme[1].lower() in PAST


def path_key(path: PurePath | str) -> str:
    """Return the ``key`` of a file on disk."""
    text = str(path)
    if text.startswith(("\\\\", "//")):
        host, _, rest = text[2:].replace("\\", "/").partition("/")
        return _file_key(host.lower(), f"/{rest}")
    return _file_key("", text)


def from_path(path: PurePath | str) -> str:
    """Return the `file:` URI of an absolute path: POSIX, with a drive letter, or UNC (``\\\\host\\share``)."""
    text = str(path)
    if text.startswith(("\\\\", "//")):
        return "file:" + quote(text.replace("\\", "/"), safe=_KEPT)
    drive = _DRIVE.match(text)
    if drive:
        return "file:///" + quote(text.lstrip("/").replace("\\", "/"), safe=_KEPT)
    return "file://" + quote(text, safe=_KEPT)


def below(folder: str, path: PurePath) -> str | None:
    """Return the URI of a path as a client that calls its folder ``folder`` would spell it; None when it isn't in there."""
    inside, whole = key(folder).rstrip("/") + "/", path_key(path)
    if not whole.startswith(inside):
        return None
    return f"{folder.rstrip('/')}/{quote(whole[len(inside) :], safe=_KEPT)}"


def _file_key(host: str, path: str) -> str:
    drive = _DRIVE.match(path)
    if drive:
        rest = ntpath.normpath(path[drive.end() :] or "/").replace("\\", "/")
        return f"file://{host}/{drive[1].lower()}:{rest}"
    plain = posixpath.normpath(path) if path else "/"
    return f"file://{host}{'/' + plain.lstrip('/') if plain.startswith('/') else plain}"
