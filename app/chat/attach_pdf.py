"""PDF to text, page by page, through pypdf.

pypdf is pure Python: it needs no native library in the packaged app, and a broken file raises
where a native reader might take the window with it. It is loaded only when a PDF comes.
Scanned pages hold no text and give none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

_Result = TypeVar("_Result")


class PdfError(Exception):
    """It cannot be read."""


class PdfLockedError(PdfError):
    """It is encrypted, with a password or by a method that is not at hand."""


def pdf_text(path: Path, progressed: Callable[[int, int], None]) -> str:
    """All pages' text, an empty line between two pages.

    `progressed` gets the pages done and all pages before each page, and may raise to give up.
    Raises `PdfError`, OSError.
    """
    import pypdf

    # It warns of every flaw it mends; the person gets the text or one sentence.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)

    def opened(stream: IO[bytes]) -> pypdf.PdfReader:
        reader = pypdf.PdfReader(stream)
        if reader.is_encrypted and not reader.decrypt(""):
            raise PdfLockedError
        return reader

    with path.open("rb") as stream:
        reader = _guarded(lambda: opened(stream))
        pages = _guarded(lambda: len(reader.pages))
        texts = []
        for number in range(pages):
            progressed(number, pages)
            texts.append(_guarded(lambda number=number: reader.pages[number].extract_text()).strip())  # type: ignore[misc]
    return "\n\n".join(texts).strip()


def _guarded(step: Callable[[], _Result]) -> _Result:
    """A damaged file fails in as many ways as there are places to damage."""
    from pypdf.errors import DependencyError, FileNotDecryptedError

    try:
        return step()
    except (PdfError, OSError):
        raise
    except (DependencyError, FileNotDecryptedError) as error:
        raise PdfLockedError from error
    except Exception as error:
        raise PdfError from error
