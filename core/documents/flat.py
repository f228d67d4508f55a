"""Documents that are one file of XML: those of Excel 2003 and Word 2003, flat OpenDocument and Open XML.

`packaged` puts them into a zip as their newer forms have it, so that the same readers read them. The sheets
of Excel 2003 have no newer form of that kind; `core.documents.xml_sheets` reads them.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import IO

from core.documents.limits import DamagedError

SPREADSHEET_XML = "spreadsheet.xml"
HEAD_BYTES = 8192  # has the whole tag of the root, which LibreOffice writes with forty namespaces
# Behind the declaration, instructions for programs and comments; a text may quote a root.
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*(?:(?:<\?[^>]*>|<!--(?:[^-]|-(?!->))*-->)\s*)*"
    rb"<(?:[\w.-]{1,40}:)?(document|Workbook|wordDocument|package)[\s>][^>]*"
)
_PART = re.compile(rb"""["/](word|ppt|xl)/""")
_KINDS = {
    b"Workbook": (b"urn:schemas-microsoft-com:office:spreadsheet", "sheets", SPREADSHEET_XML),
    b"wordDocument": (b"office/word/2003/wordml", "word", "word/document.xml"),
    b"document": (b"urn:oasis:names:tc:opendocument:xmlns:office", "opendocument", "content.xml"),
    b"package": (b"schemas.microsoft.com/office/2006/xmlPackage", "", ""),
}
_PACKAGE = "{http://schemas.microsoft.com/office/2006/xmlPackage}"


def flat_kind(head: bytes) -> str:
    """The kind of document that a file of XML is whose first `HEAD_BYTES` are `head`; empty if it is none."""
    head = head.replace(b"\0", b"")  # UTF-16
    root = _ROOT.match(head)
    if root is None:
        return ""
    space, kind, _ = _KINDS[root[1]]
    if space not in root[0]:
        return ""
    if kind == "opendocument" and b"opendocument.spreadsheet" in root[0]:
        return "sheets"
    part = _PART.search(head)
    return kind or {b"word": "word", b"ppt": "slides"}.get(part[1] if part else b"", "sheets")


def packaged(data: bytes) -> IO[bytes]:
    """The file, of which `flat_kind` has named the kind, as a zip. Raises `DamagedError`."""
    root = _ROOT.match(data[:HEAD_BYTES].replace(b"\0", b""))
    assert root
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        if part := _KINDS[root[1]][2]:
            archive.writestr(part, data)
        else:
            from xml.etree import ElementTree

            try:
                for each in ElementTree.fromstring(data).iter(f"{_PACKAGE}part"):
                    for inside in each.findall(f"{_PACKAGE}xmlData/*"):
                        archive.writestr(
                            each.get(f"{_PACKAGE}name", "").lstrip("/"), ElementTree.tostring(inside)
                        )
            except ElementTree.ParseError as error:
                raise DamagedError from error
    out.seek(0)
    return out
