"""Several knowledge bases with any display name, each with its own files and its own store.

The one named "default" reads the files folder itself; every other one a sub-folder of it.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config import Settings
from errors import ConfigurationError, StoreError

DEFAULT = "default"
_UNSAFE = re.compile(r"[^\w-]+")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Base:
    """One knowledge base: display name, the folder of its PDFs, the folder of its store."""

    name: str
    files_dir: Path
    folder: Path

    def create(self) -> None:
        """Make both folders and note the name; an existing knowledge base stays as it is."""
        self.files_dir.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / "base.json"
        if not note.exists():
            written = note.with_suffix(".new")
            text = json.dumps({"name": self.name, "id": uuid.uuid4().hex}, ensure_ascii=False)
            written.write_text(text, encoding="utf-8")
            written.replace(note)

    def exists(self) -> bool:
        """Tell whether it was created."""
        return (self.folder / "base.json").is_file()

    def id(self) -> str:
        """Return the random id that keeps collections of different installations apart on a shared server.

        :raises StoreError: the note in its folder cannot be read.
        """
        return _read(self.folder / "base.json")["id"]


def find_base(settings: Settings, *, name: str) -> Base:
    """Return the knowledge base of this display name, created or not.

    :raises ConfigurationError: the name is empty or longer than 200 characters.
    """
    shown = unicodedata.normalize("NFC", name).strip()
    if not shown or len(shown) > 200:
        raise ConfigurationError(
            f"{name!r} cannot name a knowledge base", hint="use 1 to 200 characters", code="base_name", name=name
        )
    bases = settings.data_dir / "bases"
    if shown == DEFAULT:
        return Base(DEFAULT, settings.files_dir, bases / DEFAULT)
    safe = _UNSAFE.sub("_", shown).strip("_")[:_SHOWN]
    slug = f"{safe}-{hashlib.sha256(shown.encode()).hexdigest()[:6]}"
    return Base(shown, settings.files_dir / slug, bases / slug)


def existing_base(settings: Settings, *, name: str) -> Base:
    """Return the knowledge base of this display name; the default one exists always, be it empty.

    :raises ConfigurationError: the name cannot be one.
    :raises StoreError: there is none of this name.
    """
    base = find_base(settings, name=name)
    if base.name == DEFAULT or base.exists():
        return base
    known = ", ".join(each.name for each in list_bases(settings))
    raise StoreError(
        f"there is no knowledge base {base.name!r}",
        hint=f"there are: {known}; build --kb makes one",
        code="base_unknown",
        name=base.name,
        known=known,
    )


def list_bases(settings: Settings) -> tuple[Base, ...]:
    """Return the default knowledge base, then the others by name."""
    notes = (settings.data_dir / "bases").glob("*/base.json")
    names = {str(_read(note)["name"]) for note in notes} - {DEFAULT}
    return tuple(find_base(settings, name=name) for name in (DEFAULT, *sorted(names)))


def _read(note: Path) -> Mapping[str, str]:
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
        return {"name": str(found["name"]), "id": str(found["id"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{note}: {error}", hint=f"check {note}", path=note, reason=error) from error
