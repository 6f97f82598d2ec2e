"""Attachments: from what the file names to the bytes that go along, and everything that is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from agentloom.core.events import EventStream
from agentloom.core.kinds import Attempt, Services
from agentloom.core.runner import Op
from agentloom.errors import AttachmentResolutionError
from agentloom.model.llm import Attachment as Written
from agentloom.providers.base import Attachment
from agentloom.providers.gateway import ProviderGateway
from agentloom.steps.attachments import resolve
from tests.engine.virtual import run_virtual

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
PDF = b"%PDF-1.7\n" + bytes(32)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(32)
MP3 = b"ID3\x04" + bytes(32)


async def no_child(*_: Any) -> Any:
    raise AssertionError


def resolved(*written: dict[str, Any], folder: Path | None = None, **state: Any) -> tuple[Attachment, ...]:
    services = Services("t", "mock", "m", False, ProviderGateway(), None, no_child, folder=folder)  # type: ignore[arg-type]
    op = Op("step", "s", None, state, 1)  # type: ignore[arg-type]
    attempt = Attempt("s", 1, EventStream("r", None))
    return run_virtual(resolve, [Written(**one) for one in written], op, services, attempt)


def refused(folder: Path | None = None, **written: Any) -> str:
    with pytest.raises(AttachmentResolutionError) as caught:
        resolved(written, folder=folder)
    assert not caught.value.transient
    return str(caught.value)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


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
        "data:image/png," + "".join(f"%{byte:02x}" for byte in PNG),
        b64(PNG),
        base64.encodebytes(PNG).decode(),
        "{state.content}",
    ]
    found = resolved(*({"source": each} for each in sources), folder=tmp_path, name="a", content=b64(PNG))
    assert found == (Attachment("image", "image/png", PNG),) * len(sources)


@pytest.mark.parametrize(
    ("name", "type", "data", "media_type"),
    [
        ("a", "pdf", PDF, "application/pdf"),
        ("a", "audio", WAV, "audio/wav"),
        ("a", "audio", MP3, "audio/mpeg"),
        ("a.jpg", "image", PNG, "image/png"),
        ("a.heif", "image", b"what is it?", "image/heif"),
        ("a.opus", "audio", b"what is it?", "audio/ogg"),
    ],
)
def test_the_media_type_is_seen_else_told_by_the_name(
    tmp_path: Path, name: str, type: str, data: bytes, media_type: str
) -> None:
    """What the content shows is surer than a name."""
    (tmp_path / name).write_bytes(data)
    assert resolved({"source": name, "type": type}, folder=tmp_path) == (Attachment(type, media_type, data),)  # type: ignore[arg-type]
