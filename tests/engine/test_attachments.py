"""Attachments: from what the file names to the bytes that go along, and everything that is refused (F4b, SB-4, SB-6)."""

from __future__ import annotations

import base64
import gzip
import json
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.definition import definition_of
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import EventStream
from agentloom.core.kinds import Attempt, Services
from agentloom.core.loader import load_data, load_workflow
from agentloom.core.runner import Op
from agentloom.errors import AttachmentResolutionError
from agentloom.model.config import Sandbox
from agentloom.model.llm import Attachment as Written
from agentloom.model.sources import source_kind
from agentloom.providers.base import Attachment
from agentloom.providers.gateway import ProviderGateway
from agentloom.steps.attachments import MOST_BYTES, resolve
from agentloom.tools.policy import policy_of
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, run
from tests.wire.files import FileServer, endless, file, redirect

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
PDF = b"%PDF-1.7\n" + bytes(32)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(32)
MP3 = b"ID3\x04" + bytes(32)
IMAGE = (Attachment("image", "image/png", PNG),)
TRUSTED = {"allowed_domains": ["127.0.0.1"]}


async def no_child(*_: Any) -> Any:
    raise AssertionError


def resolved(
    *written: Mapping[str, Any], folder: Path | None = None, sandbox: Mapping[str, Any] | None = None, **state: Any
) -> tuple[Attachment, ...]:
    rules = Sandbox(**(sandbox or {}))
    policy = policy_of(rules, folder)
    services = Services(
        "t",
        "mock",
        "m",
        False,
        ProviderGateway(),
        None,
        no_child,
        sandbox=rules,
        policy=policy,
        folder=folder,  # type: ignore[arg-type]
    )
    op = Op("step", "s", None, state, 1)  # type: ignore[arg-type]
    attempt = Attempt("s", 1, EventStream("r", None))
    found = anyio.run(resolve, [Written(**one) for one in written], op, services, attempt)
    addresses = [one["source"] for one in written if str(one["source"]).startswith("http") and "fetch" not in one]
    assert [each.origin for each in found if each.origin] == addresses  # recordings tell downloads by it
    return tuple(each._replace(origin="") for each in found)


def refused(source: str, folder: Path | None = None, sandbox: Mapping[str, Any] | None = None, **written: Any) -> str:
    """Return why an attachment is refused: always for good, and in a line of sane length."""
    with pytest.raises(AttachmentResolutionError) as caught:
        resolved({"source": source, **written}, folder=folder, sandbox=sandbox)
    assert not caught.value.transient
    text = str(caught.value)
    assert text.startswith("attachment `")
    assert len(text) < 400
    assert text.isprintable()
    return text


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ── what it may be ──


def test_every_source_gives_the_same(tmp_path: Path) -> None:
    """A path relative to the workflow's file, an absolute one, a `data:` URL in both forms, plain base64; the type is seen."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.bin").write_bytes(PNG)
    sources = [
        "./images/a.bin",
        "images/{state.name}.bin",
        str(tmp_path / "images" / "a.bin"),
        f"data:image/png;base64,{b64(PNG)}",
        f"DATA:;base64,{b64(PNG)}",
        f"data:;base64,{b64(PNG).replace('=', '%3D')}",
        "data:image/png," + "".join(f"%{byte:02x}" for byte in PNG),
        b64(PNG),
        base64.encodebytes(PNG).decode(),
        "{state.content}",
    ]
    found = resolved(*({"source": each} for each in sources), folder=tmp_path, name="a", content=b64(PNG))
    assert found == IMAGE * len(sources)


@pytest.mark.parametrize(
    ("name", "type", "data", "media_type"),
    [
        ("a", "pdf", PDF, "application/pdf"),
        ("a", "pdf", b"some rubbish\n" + PDF, "application/pdf"),
        ("a", "audio", WAV, "audio/wav"),
        ("a", "audio", MP3, "audio/mpeg"),
        ("a.jpg", "image", PNG, "image/png"),
        ("a.HEIF", "image", b"what is it?", "image/heif"),
        ("a.opus", "audio", b"what is it?", "audio/ogg"),
    ],
)
def test_the_media_type_is_seen_else_told_by_the_name(
    tmp_path: Path, name: str, type: str, data: bytes, media_type: str
) -> None:
    """What the content shows is surer than a name."""
    (tmp_path / name).write_bytes(data)
    assert resolved({"source": name, "type": type}, folder=tmp_path) == (Attachment(type, media_type, data),)  # type: ignore[arg-type]


def test_a_media_type_that_the_file_tells_holds(tmp_path: Path) -> None:
    """Nobody knows every format."""
    (tmp_path / "a").write_bytes(b"what is it?")
    assert resolved({"source": "a", "media_type": "Image/X-Odd"}, folder=tmp_path)[0].media_type == "image/x-odd"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("images/photo", "path"),
        ("/9j/4AAQSkZJRg", "path"),
        ("iVBORw0KGgo.png", "path"),
        ("C:\\images\\a.png", "path"),
        ("data.png", "path"),
        (b64(PNG), "base64"),
        (b64(b"\xff\xd8\xff\xe0" + bytes(40)), "base64"),
        (b64(os.urandom(6000)), "base64"),
        ("ftp://example.com/a.png", "url"),
        ("data:,x", "data"),
        (" " * 5000 + "x.png", "path"),
    ],
)
def test_what_a_source_is_stands_in_its_text(text: str, kind: str) -> None:
    """Never on the disk: the same text means the same everywhere."""
    assert source_kind(text) == kind


def test_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    """Also in child workflows in other folders, in those written in place, and after a resume from the whole definition."""
    for name in ("top", "below"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(PNG + name.encode())
    step = "  - {id: look, type: llm_call, prompt: x, attachments: [{source: ./a.png}, {source: './{state.name}.png'}]}"
    child = f"name: child\nconfig: {{provider: mock, model: m}}\nsteps:\n{step}\n"
    (tmp_path / "below" / "child.yaml").write_text(child, encoding="utf-8")
    inline = (
        "  - {id: inline, type: subworkflow, workflow_inline: {name: i, steps: [" + step.removeprefix("  - ") + "]}}"
    )
    top = f"{child.replace('child', 'top')}  - {{id: sub, type: subworkflow, workflow_path: ../below/child.yaml}}\n{inline}\n"
    (tmp_path / "top" / "top.yaml").write_text(top, encoding="utf-8")
    document = load_workflow(tmp_path / "top" / "top.yaml")
    whole = load_data(definition_of(document), str(tmp_path / "top" / "top.yaml"))
    for each in (document, whole):
        provider = Script()
        gateway = ProviderGateway()
        gateway.register(provider, max_rpm=None, max_tpm=None)
        result = run_virtual(WorkflowEngine(each, gateway).run, {"name": "a"})
        assert result.status == "success", result.error
        seen = {request.step_id: [one.data[len(PNG) :] for one in request.attachments] for request in provider.requests}
        assert seen == {"look": [b"top"] * 2, "inline.look": [b"top"] * 2, "sub.look": [b"below"] * 2}


def test_content_is_no_path_in_a_whole_definition(tmp_path: Path) -> None:
    """Base64 and templates of addresses stay what they are when the paths of a child become absolute."""
    sources = [b64(PNG), "data:image/png,x", "https://example.com/{state.x}.png", "{state.image}", "./{state.a}/b.png"]
    child = flow(ask("s", attachments=[{"source": each} for each in sources]))
    (tmp_path / "child.yaml").write_text(json.dumps(child), encoding="utf-8")
    top = {"name": "t", "steps": [{"id": "sub", "type": "subworkflow", "workflow_path": "./child.yaml"}]}
    (tmp_path / "top.yaml").write_text(json.dumps(top), encoding="utf-8")
    kept = definition_of(load_workflow(tmp_path / "top.yaml"))
    below = kept["steps"][0]["workflow_inline"]["steps"][0]["attachments"]
    assert [each["source"] for each in below] == [*sources[:-1], str(tmp_path / "{state.a}/b.png")]


def test_a_step_tells_how_many_went_along(tmp_path: Path) -> None:
    """LC-1: `attachment_count`; a refused one fails the step for good, before anything is asked."""
    world = run(
        flow(ask("s", attachments=[{"source": b64(PNG)}, {"source": f"data:;base64,{b64(PDF)}", "type": "pdf"}]))
    )
    assert world.result.step_results["s"].attachment_count == 2
    assert [each.kind for each in world.provider.requests[0].attachments] == ["image", "pdf"]
    world = run(flow(ask("s", attachments=[{"source": str(tmp_path / "none.png")}]), config={"max_retries": 3}))
    result = world.result.step_results["s"]
    assert (result.status, result.error_classification, result.attempts) == ("failed", "permanent", 1)
    assert str(result.error).endswith("`: the file does not exist")  # long paths are cut
    assert world.provider.requests == []


# ── what is refused ──


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("{state.missing}", {}, "`source` is empty"),
        ("none.png", {}, "the file does not exist"),
        ("folder", {}, "can't be read: Is a directory"),
        ("pipe", {}, "is not a regular file"),
        ("a\0b", {}, "a path holds no NUL"),
        ("a\ud800b", {}, "half of a surrogate pair"),
        ("x" * 5000 + ".png", {}, "can't be read"),
        ("empty.png", {}, "it is empty"),
        ("page.png", {}, "its content is `text/html`, which does not fit `type: image`"),
        ("a.pdf", {}, "its content is `application/pdf`, which does not fit `type: image`"),
        ("a.png", {"type": "pdf"}, "its content is `image/png`, which does not fit `type: pdf`"),
        ("text.pdf", {"type": "audio"}, "its content is of no known kind of audio; set `media_type`"),
        ("a.png", {"media_type": "png"}, "`media_type: png` is no media type; write one such as `image/png`"),
        ("a.png", {"media_type": "application/pdf"}, "`application/pdf` does not fit `type: image`"),
        ("data:image/png", {}, "a `data:` URL needs a comma before its content"),
        ("data:image/png;base64,@@@@", {}, "its base64 is broken"),
        ("data:image/png;base64,äöü", {}, "its base64 is broken"),
        ("file:///etc/passwd", {}, "the address must begin with `http://` or `https://`"),
        ("http://", {}, "the address has no usable host"),
    ],
)
def test_what_cannot_be_read_is_refused_for_good(
    tmp_path: Path, source: str, more: Mapping[str, Any], words: str
) -> None:
    """[doc] An attachment that is refused or can't be read is permanent."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, data in {
        "empty.png": b"",
        "page.png": b"\n<!DOCTYPE html><html>",
        "a.pdf": PDF,
        "a.png": PNG,
        "text.pdf": b"text",
    }.items():
        (tmp_path / name).write_bytes(data)
    assert words in refused(source, tmp_path, **more)


def test_the_limit_is_twenty_megabytes(tmp_path: Path) -> None:
    """Exactly as many are taken, one byte more is not, whatever the source; a message never holds the content."""
    most = PNG + bytes(MOST_BYTES - len(PNG))
    (tmp_path / "most").write_bytes(most)
    (tmp_path / "more").write_bytes(most + b"\0")
    with FileServer({"/most": file(most), "/more": file(most + b"\0")}) as server:
        sources = ["most", f"data:;base64,{b64(most)}", f"{server.url}/most"]
        for each in sources:
            assert len(resolved({"source": each}, folder=tmp_path, sandbox=TRUSTED)[0].data) == MOST_BYTES
        sources = ["more", f"data:;base64,{b64(most + bytes(1))}", b64(most + bytes(1)), f"{server.url}/more"]
        for each in sources:
            assert "is larger than 20 MB" in refused(each, tmp_path, TRUSTED)
    assert "is larger than 20 MB" in refused("data:image/png," + "x" * (MOST_BYTES + 1))


# ── downloads ──


def test_a_download() -> None:
    """The media type is seen, else the server's, else the name's; the query stays out of it, and out of messages."""
    unknown = b"what is it?"
    with FileServer(
        {
            "/a": file(PNG, Content_Type="text/html"),
            "/b": file(unknown, Content_Type="image/avif; x=y"),
            "/c.heic?sig=secret": file(unknown, Content_Type="application/octet-stream"),
        }
    ) as server:
        found = resolved(
            *({"source": f"{server.url}{each}"} for each in ("/a", "/b", "/c.heic?sig=secret")), sandbox=TRUSTED
        )
        said = refused(f"{server.url.replace('//', '//user:pass@')}/none?sig=secret#x", sandbox=TRUSTED)
    assert [each.media_type for each in found] == ["image/png", "image/avif", "image/heic"]
    assert said == f"attachment `{server.url}/none`: {server.url}/none: the server answers 404"
    assert all(headers["accept-encoding"] == "identity" for _, headers in server.asked)
    assert server.asked[0][1]["user-agent"].startswith("agentloom/")


def test_downloads_run_at_the_same_time_and_keep_their_order() -> None:
    """The first answer waits here until the last one was asked for; of several failures the first in the file is told."""
    last = threading.Event()

    def first(handler: Any) -> None:
        assert last.wait(20)
        file(PNG + b"1")(handler)

    def second(handler: Any) -> None:
        last.set()
        file(PNG + b"2")(handler)

    with FileServer({"/1": first, "/2": second}) as server:
        sources = [{"source": f"{server.url}/{at}"} for at in (1, 2)]
        assert [each.data[-1:] for each in resolved(*sources, sandbox=TRUSTED)] == [b"1", b"2"]
        last.clear()
        with pytest.raises(AttachmentResolutionError, match="/none`: "):
            resolved({"source": f"{server.url}/none"}, {"source": "neither.png"}, sandbox=TRUSTED)


def test_redirects_are_followed_hop_by_hop() -> None:
    """Relative ones too, a few of them; cookies and credentials stay behind."""
    with FileServer({"/img/b": file(PNG), "/a": redirect("img/b")}) as server:
        server.answers["/0"] = redirect(f"{server.url}/a", 307)
        for at in range(1, 6):
            server.answers[f"/{at}"] = redirect(f"/{at - 1}", 301)
        assert resolved({"source": f"{server.url}/3"}, sandbox=TRUSTED) == IMAGE
        assert "redirects more than 5 times" in refused(f"{server.url}/4", sandbox=TRUSTED)
    assert not any({"cookie", "authorization"} & set(headers) for _, headers in server.asked)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://169.254.169.254/latest/meta-data/", "`169.254.169.254` is an internal address"),
        ("http://[::ffff:10.0.0.1]/", "is an internal address"),
        ("http://localhost:1/", "`localhost` is this machine"),
        ("//2130706434/", "`127.0.0.2` is an internal address"),
        ("file:///etc/passwd", "the address must begin with `http://` or `https://`"),
        ("gopher://example.com/", "the address must begin with"),
        ("http://[", "the address"),
        ("http://a b/", "the address"),
    ],
)
def test_a_redirect_to_what_may_not_be_reached_is_refused(location: str, words: str) -> None:
    """SB-6: every hop is looked at, not only the first."""
    with FileServer({"/a": redirect(location)}) as server:
        assert words in refused(f"{server.url}/a", sandbox=TRUSTED)
    assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a.png", "http://127.1/a", "http://[::1]/a", "http://localhost/a"])
def test_internal_addresses_are_refused_without_a_sandbox(url: str) -> None:
    """An address may come out of the state; the refusal says how to allow a host."""
    assert "list its host in `config.sandbox.allowed_domains` if that is meant" in refused(url)


def test_the_sandbox_holds_for_attachments(tmp_path: Path) -> None:
    """SB-3, SB-4: domains, the network switch, schemes, and what may be read, whatever links say."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.png").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(PNG)
    (inside / "link.png").symlink_to(tmp_path / "b.png")
    on = {"enabled": True, "readable_paths": ["inside"]}
    assert resolved({"source": "inside/a.png"}, folder=tmp_path, sandbox=on) == IMAGE
    for source in ("b.png", "inside/../b.png", "inside/link.png", "/etc/passwd"):
        assert "may not be read; add its folder to `readable_paths`" in refused(source, tmp_path, on)
    assert "`127.0.0.1` is not among the `allowed_domains`" in refused(
        "http://127.0.0.1:1/", sandbox={"enabled": True, "allowed_domains": ["example.com"]}
    )
    assert "`allow_network` is off" in refused(
        "https://example.com/a.png", sandbox={"enabled": True, "allow_network": False}, fetch="provider"
    )
    assert "`http` is not among the `allowed_schemes`" in refused(
        "http://example.com/", sandbox={"enabled": True, "allowed_schemes": ["https"]}
    )


def test_a_name_that_changes_between_check_and_connection_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: the name is resolved once, when the connection is made; one that is internal then is refused, whatever it was before."""
    asked: list[str] = []

    async def found(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        records = ["93.184.216.34", "127.0.0.1"] if len(asked) == 1 else ["93.184.216.34"]
        return [(2, 1, 6, "", (address, port)) for address in records]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    assert "`rebind.example` (127.0.0.1) is an internal address" in refused("http://rebind.example/a.png")
    assert asked == ["rebind.example"]


def test_a_name_that_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS failure is blocked, not tried otherwise."""

    async def found(host: str, port: int, **_: Any) -> list[Any]:
        raise OSError("Name or service not known")

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    assert "`no.example` can't be found" in refused("https://no.example/a.png")


def test_bombs_and_bodies_without_end() -> None:
    """Bytes count after unpacking; what is packed twice, or in a way that nobody asked for, isn't unpacked at all."""
    bomb = gzip.compress(bytes(MOST_BYTES + 1), 9)
    deflated = zlib.compress(bytes(MOST_BYTES + 1), 9)
    with FileServer(
        {
            "/gzip": file(bomb, Content_Encoding="gzip"),
            "/deflate": file(deflated, Content_Encoding="deflate"),
            "/twice": file(gzip.compress(bomb), Content_Encoding="gzip, gzip"),
            "/br": file(b"x", Content_Encoding="br"),
            "/endless": endless(PNG + bytes(65536)),
            "/long": file(PNG, content_length=str(MOST_BYTES + 1)),
            "/ok": file(gzip.compress(PNG), Content_Encoding="gzip"),
            "/broken": file(b"no gzip", Content_Encoding="gzip"),
        }
    ) as server:
        for path in ("gzip", "deflate", "endless", "long"):
            assert "is larger than 20 MB" in refused(f"{server.url}/{path}", sandbox=TRUSTED)
        for path in ("twice", "br"):
            assert "packs its answer in a way that nobody asked for" in refused(f"{server.url}/{path}", sandbox=TRUSTED)
        assert "can't be decompressed" in refused(f"{server.url}/broken", sandbox=TRUSTED)
        assert resolved({"source": f"{server.url}/ok"}, sandbox=TRUSTED) == IMAGE


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download takes a minute at most; here less, on a server that takes connections and says nothing."""
    import socket

    monkeypatch.setattr("agentloom.tools.download.TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = refused(f"http://127.0.0.1:{server.getsockname()[1]}/", sandbox=TRUSTED)
    assert said.endswith(": no answer within 0.1 s")


def test_the_provider_may_download_itself() -> None:
    """`fetch: provider`: the address goes along, looked at as far as it tells."""
    found = resolved(
        {"source": "https://example.com/a.jpg?x=1", "fetch": "provider"},
        {"source": "https://example.com/a", "type": "pdf", "fetch": "provider"},
        {"source": b64(PNG), "fetch": "provider"},
    )
    assert found == (
        Attachment("image", "image/jpeg", url="https://example.com/a.jpg?x=1"),
        Attachment("pdf", "", url="https://example.com/a"),
        *IMAGE,
    )
    assert "is an internal address" in refused("https://10.0.0.1/a.png", fetch="provider")
