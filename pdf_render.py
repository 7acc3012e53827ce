"""Pages as pictures. PDFium is not thread-safe, so that one lock guards every use of it in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from errors import PdfEncryptedError, PdfUnreadableError
from pdf_repair import repair

if TYPE_CHECKING:
    from PIL.Image import Image

PDFIUM_LOCK = threading.RLock()
MAX_PIXELS = 20_000_000
MAX_SIDE = 6_000
"""A page of 200 inches is shown smaller instead of filling the memory."""

_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD


@contextmanager
def opened(path: Path, *, password: str = "") -> Iterator[Any]:
    """Hold a PDFium document, alone in this process; of a damaged file what can be recovered.

    :raises PdfEncryptedError: a password is needed, or the one given is wrong.
    :raises PdfUnreadableError: the file is damaged or gone.
    """
    with PDFIUM_LOCK, ExitStack() as stack:
        try:
            document = stack.enter_context(_opened(path, password=password))
        except PdfUnreadableError:
            copy = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))) / "repaired.pdf"
            if not path.is_file() or not repair(path, copy=copy, password=password):
                raise
            document = stack.enter_context(_opened(copy))
        yield document


@contextmanager
def _opened(path: Path, *, password: str = "") -> Iterator[Any]:
    import pypdfium2

    with PDFIUM_LOCK:
        try:
            document = pypdfium2.PdfDocument(path, password=password or None)
        except FileNotFoundError as error:
            raise PdfUnreadableError(f"{path.name} is gone", hint="upload it again", file=path.name) from error
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) == _PASSWORD_ERROR or "password" in str(error).lower():
                code = "pdf_password_wrong" if password else "pdf_encrypted"
                raise PdfEncryptedError(
                    f"{path.name}: {error}", hint="give the password", code=code, file=path.name
                ) from error
            raise PdfUnreadableError(f"{path.name}: {error}", hint="open and save it anew", file=path.name) from error
        try:
            yield document
        finally:
            document.close()


def page_count(path: Path, *, password: str = "") -> int:
    """Return how many pages a PDF has."""
    with opened(path, password=password) as document:
        return len(document)


def render_page(path: Path, page: int, *, scale: float = 2.0, width: int | None = None, password: str = "") -> Image:
    """Return page `page` (1-based) as an RGB picture.

    `scale` is pixels a point (2 is 144 dpi), or `width` gives the pixels across; both give way to MAX_SIDE and
    MAX_PIXELS. Annotations are drawn, forms and scripts are not run.

    :raises PdfEncryptedError: as `opened`.
    :raises PdfUnreadableError: as `opened`, or there is no such page.
    """
    import pypdfium2

    with opened(path, password=password) as document:
        if not 1 <= page <= len(document):
            raise PdfUnreadableError(
                f"{path.name} has no page {page}", hint="rebuild the knowledge base", file=path.name
            )
        try:
            sheet = document[page - 1]
            across, down = sheet.get_size()
            wanted = width / across if width else scale
            limit = min(MAX_SIDE / max(across, down), (MAX_PIXELS / (across * down)) ** 0.5)
            picture: Image = sheet.render(scale=min(wanted, limit), may_draw_forms=False).to_pil().convert("RGB")
        except (pypdfium2.PdfiumError, ZeroDivisionError, ValueError) as error:
            raise PdfUnreadableError(
                f"{path.name}, page {page}: {error}", hint="open and save it anew", file=path.name
            ) from error
    return picture


def has_ink(picture: Image) -> bool:
    """Tell a picture with something on it from a blank page."""
    small = picture.convert("L").resize((200, 280))
    dark = sum(count for value, count in enumerate(small.histogram()) if value < 200)
    return dark > 8
