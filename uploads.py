"""PDFs that a person hands in become files of the library: whole, under a harmless name, once."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath, PureWindowsPath

from errors import StoreError

NAME_BYTES = 240
"""Longest file name kept, in UTF-8 bytes: file systems allow 255."""

FORBIDDEN = frozenset('<>:"|?*')
"""Letters that Windows does not allow in names."""


class Arrival(StrEnum):
    """What became of an upload."""

    ADDED = "added"
    REPLACED = "replaced"
    ALREADY_HERE = "already_here"


@dataclass(frozen=True, slots=True)
class Upload:
    """A handed-in file: its name in the library, and what happened; `same_as` names the file with the same bytes."""

    file: str
    arrival: Arrival
    same_as: str = ""


def save_upload(folder: Path, *, name: str, data: bytes) -> Upload:
    """Write a file into the library's folder, whole or not at all.

    The same bytes are not kept twice; new bytes under a known name replace the old ones.

    :raises StoreError: the folder cannot be written.
    """
    file = library_name(name)
    digest = hashlib.sha256(data).digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.[pP][dD][fF]")):
            if path.stat().st_size == len(data) and hashlib.sha256(path.read_bytes()).digest() == digest:
                return Upload(file, Arrival.ALREADY_HERE, same_as=path.name)
        target = folder / file
        arrival = Arrival.REPLACED if target.exists() else Arrival.ADDED
        written = folder / f".{digest.hex()[:16]}.new"
        written.write_bytes(data)
        written.replace(target)
    except OSError as error:
        raise StoreError(
            f"{folder}: {error}", hint="check space and rights", code="upload_failed", file=file
        ) from error
    return Upload(file, arrival)


def library_name(name: str) -> str:
    """Return the name a file gets: no folders, no control characters, NFC, ending in .pdf, short enough to be kept."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    normal = unicodedata.normalize("NFC", last)
    kept = "".join(letter for letter in normal if letter.isprintable() and letter not in FORBIDDEN)
    stem = kept[:-4] if kept.lower().endswith(".pdf") else kept
    stem = stem.strip(". ") or "document"
    while len(stem.encode()) > NAME_BYTES - 4:
        stem = stem[:-1]
    return f"{stem}.pdf"
