"""What `list` and `status` show of a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from build_lock import Holder
from catalogue import Catalogue
from catalogue_rows import FileRow
from files_folder import FoundFile


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One file as listed: `status` is indexed, failed, new (not built yet) or changed (since the build).

    `same_as` names the other files with the same bytes.
    """

    file: str
    status: str
    pages: int = 0
    chunks: int = 0
    parser: str = ""
    ocr_pages: int = 0
    seconds: float = 0.0
    error: Mapping[str, Any] | None = None
    bytes: int = 0
    document_id: str = ""
    same_as: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return a plain object with these names."""
        return {
            "file": self.file,
            "status": self.status,
            "pages": self.pages,
            "chunks": self.chunks,
            "parser": self.parser,
            "ocr_pages": self.ocr_pages,
            "seconds": round(self.seconds, 3),
            "error": dict(self.error) if self.error else None,
            "bytes": self.bytes,
            "document_id": self.document_id,
            "same_as": list(self.same_as),
        }


@dataclass(frozen=True, slots=True)
class Status:
    """A knowledge base at a glance; `mismatch` is "", "embedder" or "chunking" when a rebuild is needed."""

    name: str
    files_dir: str
    folder: str
    documents: int
    pages: int
    chunks: int
    vectors: int
    failed: int
    waiting: int
    embedder: str
    dimension: int
    mismatch: str
    building: Holder | None

    def as_json(self) -> dict[str, Any]:
        """Return a plain object with these names."""
        building = self.building
        shown = {name: getattr(self, name) for name in self.__slots__}
        shown["building"] = building and {"pid": building.pid, "host": building.host, "since": building.since}
        return shown


def list_documents(catalogue: Catalogue | None, *, found: Sequence[FoundFile]) -> tuple[DocumentInfo, ...]:
    """Join the files of the folder with those of the catalogue, by name."""
    files = catalogue.files() if catalogue else {}
    rows = catalogue.documents() if catalogue else {}
    names = catalogue.names(list(rows)) if catalogue else {}
    on_disk = {file.name: file for file in found}
    listed = []
    for name in sorted(files.keys() | on_disk.keys()):
        file = files.get(name)
        row = rows.get(file.document_id) if file else None
        listed.append(
            DocumentInfo(
                file=name,
                status=_status(file, found=on_disk.get(name)),
                pages=row.pages if row else 0,
                chunks=row.chunks if row else 0,
                parser=row.parser if row else "",
                ocr_pages=row.ocr_pages if row else 0,
                seconds=row.seconds if row else 0.0,
                error=file.error if file and file.error else None,
                bytes=on_disk[name].size if name in on_disk else 0,
                document_id=file.document_id if file else "",
                same_as=tuple(other for other in names.get(file.document_id, ()) if other != name) if file else (),
            )
        )
    return tuple(listed)


def _status(row: FileRow | None, *, found: FoundFile | None) -> str:
    if row is None:
        return "new"
    if found is None:
        return "missing"
    return str(row.status) if found.stamp == row.stamp else "changed"
