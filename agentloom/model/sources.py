"""What the source of an attachment is: an address, a `data:` URL, plain base64, or a path. Its text alone tells, never the disk."""

from __future__ import annotations

import re
from typing import Literal

SourceKind = Literal["url", "data", "base64", "path"]

_BEGINNINGS = (
    "iVBORw0KGgo",  # PNG
    "/9j/",  # JPEG
    "R0lGOD",  # GIF
    "UklGR",  # WebP and WAV
    "Qk",  # BMP
    "SUkq",  # TIFF
    "TU0AK",
    "JVBERi",  # PDF
    "SUQz",  # MP3
    "//u",
    "//t",
    "//s",
    "T2dnUw",  # Ogg
    "ZkxhQw",  # FLAC
    "AAAA",  # MP4, HEIC and AVIF: a length, then `ftyp`
)
"""How the content of images, PDFs and sounds begins in base64."""

_SHORTEST = 32
_NO_PATH = 4096
"""A name of so many characters without a dot is no path on any system."""


def source_kind(text: str) -> SourceKind:
    """Return what a source is. Base64 is told by its letters, its length and the beginning of a known format."""
    if text[:5].lower() == "data:":
        return "data"
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        return "url"
    if text.startswith(_BEGINNINGS) or len(text) >= _NO_PATH:
        packed = "".join(text.split())
        if len(packed) >= _SHORTEST and len(packed) % 4 == 0 and packed.isascii():
            letters = packed.removesuffix("=").removesuffix("=").replace("+", "").replace("/", "")
            if letters.isalnum():  # a regular expression takes half a second for 20 MB
                return "base64"
    return "path"


def names_file(text: str) -> bool:
    """Tell whether a text in the file names a file as it stands: no address, no content, and not made at run time."""
    return bool(text) and "{" not in text and source_kind(text) == "path"
