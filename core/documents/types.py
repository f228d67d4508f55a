"""Document types that can be read, with the uniform type identifiers of macOS.

`reading.py` recognises a file by its content; endings decide only between kinds of text. The app bundle
declares the identifiers, so that the Finder offers Draftlight in Open With.
"""

from __future__ import annotations

from msgspec import Struct


class DocumentType(Struct, frozen=True):
    """`kind` as `reading.py` names it, `title` as the Finder shows it.

    `endings` are used for files that macOS has no uniform type for.
    """

    kind: str
    title: str
    uniform_types: tuple[str, ...]
    endings: tuple[str, ...] = ()


HTML_ENDINGS = frozenset((".html", ".htm", ".xhtml"))
# Texts whose kind only the ending tells.
KINDS_BY_ENDING = {
    **dict.fromkeys(HTML_ENDINGS, "html"),
    **dict.fromkeys((".csv", ".tsv", ".tab"), "table"),
    **dict.fromkeys((".srt", ".vtt"), "subtitles"),
    **dict.fromkeys((".eml", ".mht", ".mhtml"), "mail"),
    ".log": "log",
    ".ipynb": "notebook",
}
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
    DocumentType("rtf", "Rich text document", ("public.rtf",)),
    DocumentType("mail", "Mail message", ("com.apple.mail.email",)),
    DocumentType(
        "table",
        "Table",
        ("public.comma-separated-values-text", "public.tab-separated-values-text"),
    ),
    DocumentType("subtitles", "Subtitles", (), ("srt", "vtt")),
    DocumentType("notebook", "Notebook", (), ("ipynb",)),
    DocumentType("log", "Log", ("public.log", "com.apple.log")),
    DocumentType("text", "TeX document", (), ("tex",)),
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
        ),
    ),
)
