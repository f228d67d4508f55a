"""Document types that can be read, with the uniform type identifiers of macOS.

`reading.py` recognises a file by its content; endings decide only between kinds of text. The app bundle
declares the identifiers, so that the Finder offers Draftlight in Open With.
"""

from __future__ import annotations

from pathlib import Path

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
# Texts whose format only the extension shows.
KINDS_BY_ENDING = {
    **dict.fromkeys(HTML_ENDINGS, "html"),
    **dict.fromkeys((".csv", ".tsv", ".tab"), "table"),
    **dict.fromkeys((".srt", ".vtt"), "subtitles"),
    **dict.fromkeys((".eml", ".emlx", ".mht", ".mhtml"), "mail"),
    ".mbox": "mailbox",
    ".webarchive": "webarchive",
    ".log": "log",
    ".ipynb": "notebook",
}
# Folders that macOS shows as one file, by their ending, and the file inside that has the text.
_PACKAGES = {".rtfd": "TXT.rtf", ".mbox": "mbox"}
_OFFICE, _OPEN = "org.openxmlformats.", "org.oasis-open.opendocument."
DOCUMENT_TYPES = (
    DocumentType("pdf", "PDF document", ("com.adobe.pdf",)),
    DocumentType("word", "Word document", tuple(f"{_OFFICE}wordprocessingml.{each}" for each in (
        "document", "document.macroenabled", "template",
    ))),
    DocumentType("sheets", "Spreadsheet", (
        f"{_OFFICE}spreadsheetml.sheet", f"{_OFFICE}spreadsheetml.sheet.macroenabled",
        f"{_OFFICE}spreadsheetml.template", "com.microsoft.excel.sheet.binary.macroenabled",
        "com.microsoft.excel.xls", f"{_OPEN}spreadsheet",
    )),
    DocumentType("slides", "Presentation", tuple(f"{_OFFICE}presentationml.{each}" for each in (
        "presentation", "presentation.macroenabled", "slideshow", "template",
    ))),
    DocumentType("opendocument", "OpenDocument file", (
        f"{_OPEN}text", f"{_OPEN}text-template", f"{_OPEN}presentation",
    )),
    DocumentType("opendocument", "Flat OpenDocument file", (), ("fodt", "fods", "fodp")),
    DocumentType("book", "E-book", ("org.idpf.epub-container",)),
    DocumentType("html", "Web page", ("public.html", "public.xhtml")),
    DocumentType("rtf", "Rich text document", ("public.rtf",)),
    DocumentType("rtf", "Rich text document with pictures", ("com.apple.rtfd",)),
    DocumentType("mail", "Mail message", ("com.apple.mail.email", "com.apple.mail.emlx")),
    DocumentType("mailbox", "Mailbox", (), ("mbox",)),
    DocumentType("webarchive", "Web archive", ("com.apple.webarchive",)),
    DocumentType("mail", "Saved web page", (), ("mht", "mhtml")),
    DocumentType("table", "Table", (
        "public.comma-separated-values-text", "public.tab-separated-values-text",
    )),
    DocumentType("subtitles", "Subtitles", (), ("srt", "vtt")),
    DocumentType("notebook", "Notebook", (), ("ipynb",)),
    DocumentType("log", "Log", ("public.log", "com.apple.log")),
    DocumentType("text", "TeX document", (), ("tex",)),
    DocumentType("text", "Text document", (
        "public.plain-text", "net.daringfireball.markdown", "public.source-code", "public.script",
        "public.json", "public.xml", "public.yaml",
    )),
)  # fmt: skip


def text_file(path: Path) -> Path:
    """The file with the text of a folder that macOS shows as one file; `path` if it is another file."""
    inside = _PACKAGES.get(path.suffix.lower())
    return path / inside if inside and (path / inside).is_file() else path
