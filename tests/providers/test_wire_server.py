"""The loopback server itself: strict about requests, and runnable by hand."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.wire.server import KEY, REPLY, WireServer

GOOD = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}


def post(url: str, body: Any, key: str = KEY, path: str = "/chat/completions") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_token": 5}, "Unrecognized request argument supplied: max_token"),
        ({"model": ""}, "Missing required parameter: 'model'"),
        ({"messages": []}, "Missing required parameter: 'messages'"),
        ({"messages": [{"role": "user"}]}, "Invalid fields in 'messages[0]'"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "Invalid value in 'messages[0]'"),
        ({"messages": [{"role": "user", "content": "x", "step": 1}]}, "Invalid fields in 'messages[0]'"),
        ({"temperature": "hot"}, "Invalid type for 'temperature'"),
        ({"temperature": 3}, "A number is out of range"),
        ({"max_tokens": 0}, "A number is out of range"),
        ({"max_tokens": True}, "Invalid type for 'max_tokens'"),
        ({"stream_options": {"include_usage": True}}, "The 'stream_options' parameter is only allowed"),
        ({"model": "o3", "max_tokens": 5}, "Unsupported parameter: 'max_tokens'"),
    ],
)
def test_unknown_and_missing_fields_are_refused(change: dict[str, Any], words: str) -> None:
    """A client that sends too much or too little fails here before it fails at a vendor's."""
    with WireServer() as server:
        status, answer = post(server.url, GOOD | change)
    assert status == 400
    assert answer["error"]["message"].startswith(words)


def test_paths_keys_and_bodies() -> None:
    """404, 401 and 400."""
    with WireServer() as server:
        assert post(server.url, GOOD)[0] == 200
        assert post(server.url, GOOD, path="/completions")[0] == 404
        assert post(server.url, GOOD, key="wrong")[0] == 401
        assert post(server.url, b"{")[0] == 400
        assert post(server.url, [])[0] == 400
    assert len(server.requests) == 5


def test_it_runs_by_hand(root: Path) -> None:
    """As a script, on a port of its own."""
    command = [sys.executable, "tests/wire/server.py", "--port", "0", "--mode", "429", "--mode", "ok"]
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731 - also under `nohup … &`
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip().removeprefix("OPENAI_BASE_URL=")
            assert post(f"{url}/v1", GOOD, key="any")[0] == 429
            status, answer = post(f"{url}/v1", GOOD, key="any")
            assert (status, answer["choices"][0]["message"]["content"]) == (200, REPLY)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
