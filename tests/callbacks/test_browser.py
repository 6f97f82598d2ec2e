"""The page in a real Chromium: what is shown, and that its buttons decide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.callbacks.conftest import StartServer, done, publish

TOKEN = "correct horse battery staple"


class Browser:
    """A headless Chromium with one page, driven over a pair of pipes: messages are JSON, ended by a NUL."""

    def __init__(self, program: str, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")
        command = " ".join([program, *options, f"--user-data-dir={profile}", "about:blank"])
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{theirs_in} 4>&{theirs_out}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb", buffering=0), os.fdopen(ours_out, "wb", buffering=0)
        self._data = b""
        self._last = 0
        self._session: str | None = None
        self.said: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the browser, and return its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def after(self, what: Callable[[], object]) -> None:
        """Do something that leads to another page, and wait until that is loaded."""
        seen = len(self.said)
        what()
        while not any(event.get("method") == "Page.loadEventFired" for event in self.said[seen:]):
            self._receive()

    def open(self, url: str) -> None:
        """Open a page."""
        self.after(lambda: self.call("Page.navigate", url=url))

    def evaluate(self, script: str) -> Any:
        """Return what a script gives in the page."""
        return self.call("Runtime.evaluate", expression=script, userGesture=True)["result"].get("value")

    def click(self, selector: str) -> None:
        """Click on the middle of an element as a mouse does."""
        place = f"(() => {{ const r = document.querySelector({selector!r}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
        x, y = self.call("Runtime.evaluate", expression=place, returnByValue=True)["result"]["value"]
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def complaints(self) -> list[str]:
        """Return what the browser held against the page: refused styles and scripts, failed loads, errors."""
        found = []
        for event in self.said:
            if event.get("method") == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]))
        return found

    def close(self) -> None:
        """End the browser."""
        self._out.close()
        self._process.kill()
        self._process.wait()
        self._in.close()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            chunk = self._in.read(65536)
            assert chunk, "the browser has gone"
            self._data += chunk
        line, _, self._data = self._data.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            self.said.append(message)
        return message


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        cure = "Chromium is missing; install the package `chromium`"
        pytest.fail(cure, pytrace=False) if os.environ.get("CI") else pytest.skip(cure)
    found = Browser(program, tmp_path / "profile")
    yield found
    found.close()


def test_somebody_signs_in_looks_and_decides(
    serve: StartServer, pause: Callable[..., None], browser: Browser, tmp_path: Path
) -> None:
    """A person with a browser: the token, the list, what the steps gave, one click on a button, and it is gone from the list."""
    pause("r1", publish(tmp_path, name="<b>first</b> & one"))
    pause("r2", publish(tmp_path, name="second", timeout_seconds=3600, on_timeout="reject"))
    server = serve(env={"AGENTLOOM_CALLBACK_TOKEN": TOKEN})
    browser.open(f"http://127.0.0.1:{server.port}/")
    assert browser.evaluate("document.title") == "Approvals"
    browser.evaluate(f"document.querySelector('#token').value = {TOKEN!r}")
    browser.after(lambda: browser.click("button"))
    assert browser.evaluate("document.title") == "2 runs wait for approval"
    assert browser.evaluate("document.querySelector('h2').textContent") == "<b>first</b> & one"
    assert browser.evaluate("document.cookie") == ""  # not for scripts
    assert "UTC, it then is rejected" in browser.evaluate("document.body.innerText")
    # The style is the one that the policy allows.
    assert browser.evaluate("getComputedStyle(document.querySelector('.yes')).backgroundColor") != "rgba(0, 0, 0, 0)"
    browser.after(lambda: browser.click("button.yes"))
    assert browser.evaluate("document.querySelector('[role=status]').textContent") == "Run r1 is approved and goes on."
    assert browser.evaluate("document.title") == "1 run waits for approval"
    server.wait_for("run r1: success")
    browser.after(lambda: browser.click("button.no"))
    assert browser.evaluate("document.title") == "Nothing waits for approval"
    server.wait_for("run r2: success")
    assert done(tmp_path) == ["approved", "rejected"]
    assert [text for text in browser.complaints() if "favicon" not in text] == []


def test_a_foreign_page_cannot_decide(
    serve: StartServer, pause: Callable[..., None], browser: Browser, tmp_path: Path
) -> None:
    """CSRF: a page from elsewhere posts a form and fetches; without a token, and nothing happens."""
    pause("r1", publish(tmp_path))
    server = serve()
    target = f"http://127.0.0.1:{server.port}"
    evil = tmp_path / "evil.html"
    evil.write_text(f'<title>evil</title><form method="post" action="{target}/approve/r1"><button>go</button></form>')
    browser.open(evil.as_uri())
    browser.after(lambda: browser.click("button"))
    assert "requests from other sites are refused" in browser.evaluate("document.body.innerText")
    browser.open(evil.as_uri())
    script = f"fetch('{target}/approve/r1', {{method: 'POST', mode: 'no-cors'}}).then(() => 'sent', () => 'refused')"
    browser.call("Runtime.evaluate", expression=script, awaitPromise=True)
    assert [run["run_id"] for run in server.ask("GET", "/pending").json["paused_runs"]] == ["r1"]
    assert done(tmp_path) == []
