"""Visibility on PDF pages: layers that are off, text of other directions, appearances of annotations.

PDFium takes the text of a page in the order of its content, shown or not. These functions change the objects
of a loaded page, never the file: load the page again to have it unchanged. A turn is the angle, in degrees
clockwise, by which a page is turned until a text is upright: 0, 90, 180 or 270. Coordinates are points, y
upwards.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

_LEVEL_DEGREES = 2.0
_DEEPEST = 6  # forms inside each other
# Most layers of a page that are checked; others count as shown.
_MOST_LAYERS = 64
_MOST_OBJECTS = 50_000
_PICTURE_PIXELS = 600  # of a page's longer side, where layers are drawn
_LEAST_PAGE = 8.0  # points
_OFF_PAGE = 1.0  # points of a word that must be on the page
_TURNS = {0: (1, 0, 0, 1), 90: (0, -1, 1, 0), 180: (-1, 0, 0, -1), 270: (0, 1, -1, 0)}


class _Drawn(NamedTuple):
    """A page object other than a form: kind, angle of its text in degrees, and the layers it belongs to."""

    handle: Any
    kind: int
    angle: float
    layers: tuple[object, ...]


def _drawn(page: pypdfium2.PdfPage, *, layered: bool = False) -> Iterator[_Drawn]:
    """The objects of a page and those of its forms, in their order; with their layers if `layered`."""
    matrix, size, left = raw.FS_MATRIX(), ctypes.c_float(), _MOST_OBJECTS

    def inside(objects: Iterator[object], angle: float, layers: tuple[object, ...]) -> Iterator[_Drawn]:
        nonlocal left
        for each in objects:
            left -= 1
            if left < 0:
                return
            kind = raw.FPDFPageObj_GetType(each)
            own = angle
            if kind in (raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_FORM):
                raw.FPDFPageObj_GetMatrix(each, matrix)
                own += math.degrees(math.atan2(matrix.b, matrix.a))
            if kind == raw.FPDF_PAGEOBJ_TEXT and raw.FPDFTextObj_GetFontSize(each, size) and size.value < 0:
                own += 180
            of = layers
            for at in range(raw.FPDFPageObj_CountMarks(each) if layered else 0):
                if name := _layer(raw.FPDFPageObj_GetMark(each, at)):
                    of = (*of, name)
            if kind != raw.FPDF_PAGEOBJ_FORM:
                yield _Drawn(each, kind, own, of)
            elif len(of) < _DEEPEST:
                count = raw.FPDFFormObj_CountObjects(each)
                objects_inside = (raw.FPDFFormObj_GetObject(each, at) for at in range(count))
                # A form may be in a layer, which PDFium does not report.
                yield from inside(objects_inside, own, (*of, _address(each)))

    count = raw.FPDFPage_CountObjects(page.raw)
    yield from inside((raw.FPDFPage_GetObject(page.raw, at) for at in range(count)), 0.0, ())


def _layer(mark: object) -> object:
    """The name of the layer that a mark of an object puts it in, or the mark of a rule for several; None for
    another mark.
    """
    if _name(raw.FPDFPageObjMark_GetName, mark) != "OC":
        return None
    return _name(raw.FPDFPageObjMark_GetParamStringValue, mark, b"Name") or _address(mark)


def _address(of: object) -> int:
    assert isinstance(of, ctypes._Pointer)
    return ctypes.addressof(of.contents)


def _name(call: object, *arguments: object) -> str:
    assert callable(call)
    buffer, size = ctypes.create_string_buffer(256), ctypes.c_ulong()
    if not call(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), len(buffer), size):
        return ""
    return buffer.raw[: min(size.value, len(buffer))].decode("utf-16-le", "replace").partition("\0")[0]


def hide_layers(page: pypdfium2.PdfPage) -> bool:
    """Remove the objects of layers that are off from the loaded page; returns whether there were any.

    PDFium does not report the state of a layer but applies it when drawing, so each layer is drawn alone.
    """
    drawn = list(_drawn(page, layered=True))
    layers: defaultdict[tuple[object, ...], list[_Drawn]] = defaultdict(list)
    for each in drawn:
        if each.layers and each.kind == raw.FPDF_PAGEOBJ_TEXT:
            layers[each.layers].append(each)
    if not layers:
        return False
    for each in drawn:
        raw.FPDFPageObj_SetIsActive(each.handle, False)
    hidden: set[tuple[object, ...]] = set()
    for layer in list(layers)[:_MOST_LAYERS]:
        modes = [raw.FPDFTextObj_GetTextRenderMode(each.handle) for each in layers[layer]]
        for each in layers[layer]:
            raw.FPDFPageObj_SetIsActive(each.handle, True)
            # The letters of a scan are not drawn anyway.
            raw.FPDFTextObj_SetTextRenderMode(each.handle, raw.FPDF_TEXTRENDERMODE_FILL)
        if not _shows(page):
            hidden.add(layer)
        for each, mode in zip(layers[layer], modes):
            raw.FPDFPageObj_SetIsActive(each.handle, False)
            raw.FPDFTextObj_SetTextRenderMode(each.handle, mode)
    for each in drawn:
        raw.FPDFPageObj_SetIsActive(each.handle, each.layers not in hidden)
    return bool(hidden)


def _shows(page: pypdfium2.PdfPage) -> bool:
    """Whether the page draws anything."""
    width, height = page.get_size()
    scale = _PICTURE_PIXELS / max(width, height, 1)
    picture = page.render(scale=scale, fill_color=(0, 0, 0, 0), force_bitmap_format=raw.FPDFBitmap_BGRA,
                          may_draw_forms=False, draw_annots=False)  # fmt: skip
    return any(bytes(picture.buffer))


def turns(page: pypdfium2.PdfPage) -> list[int]:
    """The turns of the page's texts, that of most objects first."""
    rotation, found = page.get_rotation(), Counter[int]()
    for each in _drawn(page):
        if each.kind == raw.FPDF_PAGEOBJ_TEXT:
            found[_turn(each, rotation)] += 1
    return [turn for turn, _ in found.most_common()] or [rotation]


def _turn(text: _Drawn, rotation: int) -> int:
    """The turn of a text; of slanting text, that of the page."""
    quarters = round(text.angle / 90)
    return quarters * 90 % 360 if abs(text.angle - quarters * 90) < _LEVEL_DEGREES else rotation


def turned_text(page: pypdfium2.PdfPage, turn: int) -> pypdfium2.PdfTextPage:
    """The text of that turn on a page that is turned by it."""
    rotation = page.get_rotation()
    for each in list(_drawn(page)):
        if each.kind == raw.FPDF_PAGEOBJ_TEXT and _turn(each, rotation) != turn:
            raw.FPDFPageObj_SetIsActive(each.handle, False)
    for at in range(raw.FPDFPage_CountObjects(page.raw)):
        raw.FPDFPageObj_Transform(raw.FPDFPage_GetObject(page.raw, at), *_TURNS[turn], 0, 0)
    # PDFium finds the direction of lines on the page's area alone, which is kept with the document.
    area = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page.raw, area)
    left, bottom, right, top = area.left, area.bottom, area.right, area.top
    boxes = {
        0: (left, bottom, right, top),
        90: (bottom, -right, top, -left),
        180: (-right, -top, -left, -bottom),
        270: (-top, left, -bottom, right),
    }
    _set_area(page, boxes[turn], 0)
    text = page.get_textpage()
    _set_area(page, boxes[0], rotation)
    return text


def _set_area(page: pypdfium2.PdfPage, box: tuple[float, float, float, float], rotation: int) -> None:
    page.set_rotation(rotation)
    page.set_mediabox(*box)
    page.set_cropbox(*box)


def visible_area(page: pypdfium2.PdfPage) -> tuple[float, float, float, float]:
    """The left, bottom, right and top edge of the crop box, less a narrow margin; infinite if the page has
    no size.
    """
    area = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page.raw, area)
    if area.right - area.left < _LEAST_PAGE or area.top - area.bottom < _LEAST_PAGE:
        return -math.inf, -math.inf, math.inf, math.inf
    return area.left + _OFF_PAGE, area.bottom + _OFF_PAGE, area.right - _OFF_PAGE, area.top - _OFF_PAGE


def appearances(document: pypdfium2.PdfDocument, number: int, indices: Sequence[int]) -> list[str]:
    """The texts of the appearance streams of these annotations; empty if the page cannot be copied."""
    copy = pypdfium2.PdfDocument.new()
    try:
        copy.import_pages(document, [number])
        page = copy[0]
        count = raw.FPDFPage_GetAnnotCount(page.raw)
        areas = [_area(page, index) for index in indices]
        for index in reversed(range(count)):
            if index not in indices:
                raw.FPDFPage_RemoveAnnot(page.raw, index)
        own = raw.FPDFPage_CountObjects(page.raw)
        raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY)
        page.close()
        page = copy[0]
        for at in range(own):
            raw.FPDFPageObj_SetIsActive(raw.FPDFPage_GetObject(page.raw, at), False)
        text = page.get_textpage()
        return [text.get_text_bounded(*area) if area else "" for area in areas]
    except pypdfium2.PdfiumError:
        return []
    finally:
        copy.close()


def _area(page: pypdfium2.PdfPage, index: int) -> tuple[float, float, float, float] | None:
    annotation, area = raw.FPDFPage_GetAnnot(page.raw, index), raw.FS_RECTF()
    if not annotation:
        return None
    found = raw.FPDFAnnot_GetRect(annotation, ctypes.byref(area))
    raw.FPDFPage_CloseAnnot(annotation)
    return (area.left, area.bottom, area.right, area.top) if found else None
