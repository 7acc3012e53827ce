"""The folder of a knowledge base's PDFs: what is in it, and when a file may have changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from errors import StoreError

_UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A PDF in the files folder; `stamp` changes when its bytes may have, and is empty when it cannot be told."""

    name: str
    folder: Path
    stamp: str
    size: int

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / self.name


def scan(folder: Path) -> tuple[FoundFile, ...]:
    """Return the PDFs directly in `folder`, by name, none where there is no folder; hidden files are left alone.

    :raises StoreError: the folder is there and cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            named = [entry for entry in entries if entry.name.lower().endswith(".pdf") and entry.name[0] != "."]
            found = [file for entry in named if (file := _found(entry, folder=folder))]
            return tuple(sorted(found, key=lambda file: file.name))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _unreadable(folder, error=error) from error


def is_folder(path: Path) -> bool:
    """Tell whether there is a folder.

    :raises StoreError: it cannot be told.
    """
    try:
        return S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error=error) from error


def stamp(path: Path) -> str:
    """Return size and times of a file: the same as long as nobody wrote it."""
    return _stamp(path.stat())


def _found(entry: os.DirEntry[str], *, folder: Path) -> FoundFile | None:
    """Return what is there; None for a folder, or a file that went away meanwhile."""
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    except OSError:
        # A drive that fails for a moment has not lost its files.
        return FoundFile(entry.name, folder, _UNKNOWN, 0)
    return FoundFile(entry.name, folder, _stamp(status), status.st_size) if S_ISREG(status.st_mode) else None


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def _unreadable(folder: Path, *, error: OSError) -> StoreError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "check the drive and the folder's rights"
    return StoreError(f"{folder}: {reason}", hint=hint, code="files_unreadable", path=folder, reason=reason)
