"""PDF to text, page by page, through pypdf.

pypdf is pure Python: it needs no native library in the packaged app, and it bounds what one stream
may unpack to. It is loaded only when a PDF comes. Scanned pages hold no text and give none. Pages
that are drawn by the same stream are read once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING, TypeVar

from core.documents.limits import DamagedError, DemandingError, Gathered, LockedError, Told, UnreadableError

if TYPE_CHECKING:
    import pypdf

_Result = TypeVar("_Result")
# The reader keeps every object it has met; fonts are met again, pictures are not.
_FORGET_AFTER_PAGES = 32


def pdf_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All pages' text, an empty line between two pages; empty if there are only pictures.

    `told` hears the pages done before each page. Raises `UnreadableError`, OSError.
    """
    import pypdf

    # It warns of every flaw it mends; the person gets the text or one sentence.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)

    def opened() -> pypdf.PdfReader:
        reader = pypdf.PdfReader(stream)
        if reader.is_encrypted and not reader.decrypt(""):
            raise LockedError
        return reader

    reader = _guarded(opened)
    pages = _guarded(lambda: len(reader.pages))
    known: dict[str, str] = {}
    for number in range(pages):
        told(number, pages, "pages")
        text = _guarded(partial(_page, reader, number, known))
        gathered.add(f"\n\n{text}" if number else text)
        if number % _FORGET_AFTER_PAGES == _FORGET_AFTER_PAGES - 1:
            reader.resolved_objects.clear()
    return gathered.text().strip()


def _page(reader: pypdf.PdfReader, number: int, known: dict[str, str]) -> str:
    page = reader.pages[number]
    drawn_by = f"{page.raw_get('/Contents')!r} {page.raw_get('/Resources')!r}" if _is_shared(page) else ""
    if drawn_by not in known:
        text = page.extract_text().strip()
        if not drawn_by:
            return text
        known[drawn_by] = text
    return known[drawn_by]


def _is_shared(page: pypdf.PageObject) -> bool:
    """Whether what draws it is said by reference, so that another page may say the same."""
    import pypdf

    return "/Resources" in page and isinstance(page.raw_get("/Contents"), pypdf.generic.IndirectObject)


def _guarded(step: Callable[[], _Result]) -> _Result:
    """A damaged file fails in as many ways as there are places to damage."""
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

    try:
        return step()
    except (UnreadableError, OSError, MemoryError):
        raise
    except (DependencyError, FileNotDecryptedError) as error:
        raise LockedError from error
    except LimitReachedError as error:
        raise DemandingError from error
    except Exception as error:
        raise DamagedError from error
