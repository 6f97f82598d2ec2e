"""The table of httpx's failures: complete, and in our own words."""

from __future__ import annotations

import inspect

import httpx
import pytest

from agentloom.providers.http import FAILURES, endpoint, server_of

CLASSES = sorted(
    {item for item in vars(httpx).values() if inspect.isclass(item) and issubclass(item, Exception)},
    key=lambda item: item.__name__,
)


def test_httpx_has_the_exceptions_we_think_it_has() -> None:
    """The walk below walks over something."""
    assert {httpx.ConnectError, httpx.ReadTimeout, httpx.InvalidURL, httpx.StreamClosed} <= set(CLASSES)
    assert len(CLASSES) >= 25


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_of_httpx_has_its_own_row(kind: type[Exception]) -> None:
    """A new one in a later version must be thought about; its text can be filled in."""
    text = FAILURES[kind].text.format(where="http://host/v1", timeout=60.0)
    assert "http://host/v1" in text
    assert text[0].islower() or text.startswith("http")
    assert "{" not in text


def test_the_table_holds_nothing_else() -> None:
    """No row for what doesn't exist."""
    assert set(FAILURES) == set(CLASSES)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8/v1/chat?key=secret#x", "https://host:8/v1/chat"),
        ("https://user:secret@host/v1", "https://host/v1"),
        ("//[broken", "the server"),
        ("", "the server"),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, shown: str) -> None:
    """User, query and fragment may hold keys."""
    assert server_of(url) == shown


@pytest.mark.parametrize(
    ("base", "whole"),
    [
        ("https://host/v1", "https://host/v1/chat/completions"),
        ("https://host/v1/", "https://host/v1/chat/completions"),
        ("https://host/a/b?v=1", "https://host/a/b/chat/completions?v=1"),
    ],
)
def test_endpoints(base: str, whole: str) -> None:
    """The path grows, the query stays."""
    assert endpoint(base, "/chat/completions") == whole
