"""XFA forms: XML in a PDF whose only page usually says “Please wait”.

The template has the texts and captions in their order, the data the values of the fields by their names.
PDFium does not draw these forms. Scripts that change a form are not run.
"""

from __future__ import annotations

import ctypes
import io
import zipfile
from collections.abc import Iterator

import pypdfium2
from pypdfium2 import raw

from core.documents.parts import BROKEN, Element, read_tree

_MOST_PACKETS = 50
_MOST_BYTES = 32 * 1024 * 1024
_HIDDEN = ("hidden", "invisible", "inactive")
_CONTAINERS = ("subform", "subformSet", "area", "exclGroup", "template", "pageSet", "pageArea")


def xfa_text(document: pypdfium2.PdfDocument) -> str:
    """The form's texts, a line for each; empty if it has none that can be read."""
    packets = dict(_packets(document))
    try:
        template, data = (_tree(packets.get(name, b"")) for name in ("template", "datasets"))
    except BROKEN:
        return ""
    values: dict[str, list[str]] = {}
    for each in data.all():
        if not each.elements and (text := each.line()):
            values.setdefault(each.tag, []).append(text)
    return "\n".join(_lines(template, values))


def _packets(document: pypdfium2.PdfDocument) -> Iterator[tuple[str, bytes]]:
    for index in range(min(raw.FPDF_GetXFAPacketCount(document.raw), _MOST_PACKETS)):
        name = ctypes.create_string_buffer(64)
        raw.FPDF_GetXFAPacketName(document.raw, index, name, len(name))
        size = ctypes.c_ulong()
        raw.FPDF_GetXFAPacketContent(document.raw, index, None, 0, size)
        if 0 < size.value <= _MOST_BYTES:
            content = ctypes.create_string_buffer(size.value)
            raw.FPDF_GetXFAPacketContent(document.raw, index, content, len(content), size)
            yield name.value.decode("utf-8", "replace"), content.raw


def _tree(packet: bytes) -> Element:
    if not packet:
        return Element("")
    part = io.BytesIO()
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("packet", packet)
    with zipfile.ZipFile(part) as archive:
        return read_tree(archive, "packet", _MOST_BYTES)


def _lines(element: Element, values: dict[str, list[str]]) -> Iterator[str]:
    for each in element.elements:
        if each.get("presence") in _HIDDEN:
            continue
        if each.tag in _CONTAINERS:
            yield from _lines(each, values)
        elif each.tag in ("draw", "field"):
            caption, own = _value(each.child("caption").child("value")), _value(each.child("value"))
            of_field = values.get(each.get("name"), []) if each.tag == "field" else []
            shown = of_field.pop(0) if of_field else own
            line = " ".join(filter(None, (caption, shown)))
            if line and each.child("ui").child("button").name == "":
                yield line


def _value(value: Element) -> str:
    return value.line() if value.child("image").name == "" else ""
