"""Document types that can be read, with the uniform type identifiers of macOS.

`reading.py` recognises a file by its content; endings decide only between HTML and other text. The app bundle
declares the identifiers, so that the Finder offers Draftlight in Open With.
"""

from __future__ import annotations

from msgspec import Struct


class DocumentType(Struct, frozen=True):
    """`kind` as `reading.py` names it, `title` as the Finder shows it."""

    kind: str
    title: str
    uniform_types: tuple[str, ...]


HTML_ENDINGS = frozenset((".html", ".htm", ".xhtml"))
DOCUMENT_TYPES = (
    DocumentType("pdf", "PDF document", ("com.adobe.pdf",)),
    DocumentType("word", "Word document", ("org.openxmlformats.wordprocessingml.document",)),
    DocumentType(
        "sheets",
        "Spreadsheet",
        (
            "org.openxmlformats.spreadsheetml.sheet",
            "com.microsoft.excel.xls",
            "org.oasis-open.opendocument.spreadsheet",
        ),
    ),
    DocumentType("slides", "Presentation", ("org.openxmlformats.presentationml.presentation",)),
    DocumentType(
        "opendocument",
        "OpenDocument file",
        ("org.oasis-open.opendocument.text", "org.oasis-open.opendocument.presentation"),
    ),
    DocumentType("book", "E-book", ("org.idpf.epub-container",)),
    DocumentType("html", "Web page", ("public.html", "public.xhtml")),
    DocumentType(
        "text",
        "Text document",
        (
            "public.plain-text",
            "net.daringfireball.markdown",
            "public.source-code",
            "public.script",
            "public.json",
            "public.xml",
            "public.yaml",
            "public.comma-separated-values-text",
            "public.tab-separated-values-text",
            "public.log",
        ),
    ),
)
