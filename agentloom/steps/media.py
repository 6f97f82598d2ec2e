"""What kind of content bytes are, by how they begin, and what a name says of it."""

from __future__ import annotations

import re
from typing import Final

from agentloom.providers.base import AttachmentKind

_SIGNATURES: Final = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
    (rb"RIFF....WAVE", "audio/wav"),
    (rb"BM....\x00\x00\x00\x00", "image/bmp"),
    (rb"II\*\x00|MM\x00\*", "image/tiff"),
    (rb"....ftyp(heic|heix|hevc|heim|heis)", "image/heic"),
    (rb"....ftyp(mif1|msf1)", "image/heif"),
    (rb"....ftypavi[fs]", "image/avif"),
    (rb"....ftypM4A ", "audio/mp4"),
    (rb"ID3|\xff[\xfb\xfa\xf3\xf2\xe3\xe2]", "audio/mpeg"),
    (rb"OggS", "audio/ogg"),
    (rb"fLaC", "audio/flac"),
    (rb"FORM....AIFF", "audio/aiff"),
    (rb"\xff[\xf1\xf9]", "audio/aac"),
    (rb"(?i)\xef?\xbb?\xbf?\s*(<!doctype html|<html)", "text/html"),
    (rb"\xef?\xbb?\xbf?\s*(<\?xml[\s\S]{0,200})?<svg", "image/svg+xml"),
    (rb"PK\x03\x04", "application/zip"),
    (rb"\x1f\x8b", "application/gzip"),
    (rb"[\s\S]{0,1019}%PDF-", "application/pdf"),  # readers take rubbish before it, and so do vendors
)

_NAMES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "aif": "audio/aiff",
    "aiff": "audio/aiff",
}


def by_content(data: bytes) -> str:
    """Return the media type that the beginning of the content shows; empty when it shows none."""
    start = data[:1024]
    for pattern, media_type in _SIGNATURES:
        if re.match(
            pattern, start, re.DOTALL | re.IGNORECASE if media_type in ("text/html", "image/svg+xml") else re.DOTALL
        ):
            return media_type
    return ""


def by_name(name: str) -> str:
    """Return the media type that the end of a name stands for; empty for an unknown one. Not the system's table: it differs by machine."""
    return _NAMES.get(name.rpartition(".")[2].lower(), "")


def fits(media_type: str, kind: AttachmentKind) -> bool:
    """Tell whether a media type is one of a kind of attachment."""
    return media_type == "application/pdf" if kind == "pdf" else media_type.startswith(f"{kind}/")
