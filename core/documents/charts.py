"""Charts and SmartArt diagrams of Office files to text.

A chart is its title, the titles of its axes, and a table with a row per category and a column per series: the
values that the file stores for its appearance, in the format of the chart. A diagram is the list of its texts
by level.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

from core.documents import strings
from core.documents.limits import DamagedError
from core.documents.number_formats import GENERAL, number_text
from core.documents.parts import CHART, DIAGRAM, A, Elements, R, Relations, parse_part

_MOST_BYTES = 64 * 1024 * 1024
_MOST_POINTS = 20_000  # of a series
_DEEPEST = 8
_MOST_NESTED = 100
_MOST_CATEGORY_CHARACTERS = 1_000
_CATEGORIES = ("cat", "xVal")
_VALUES = ("val", "yVal")


def drawing_id(name: str, attributes: dict[str, str]) -> str:
    """The relation to a chart's or a diagram's part that an element has; empty if it is another element."""
    if name == CHART + "chart":
        return attributes.get(R + "id", "")
    return attributes.get(R + "dm", "") if name == DIAGRAM + "relIds" else ""


def drawing_text(archive: zipfile.ZipFile, relations: Relations, identifier: str) -> str:
    """The lines of the chart or diagram with that relation, or nothing. Raises as `parse_part` does."""
    part = relations.by_id.get(identifier, "")
    if part not in archive.NameToInfo:
        return ""
    drawing = _Drawing()
    parse_part(archive, part, drawing, _MOST_BYTES)
    return "\n".join([*drawing.chart_lines(), *drawing.diagram_lines()])


class _Series:
    """Categories and values by the index of their point, as shown."""

    def __init__(self) -> None:
        self.name: list[str] = []
        self.categories: dict[int, str] = {}
        self.values: dict[int, str] = {}


class _Drawing(Elements):
    """Reads the part of a chart or the data of a diagram."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._titles: list[str] = []  # of the chart, then of its axes
        self._axes: list[str] = []
        self._series: list[_Series] = []
        self._code = GENERAL
        self._point = 0
        self._text: list[str] = []
        # Texts of a diagram by the id of their node, and the ids below each, with their order.
        self._nodes: dict[str, list[str]] = {}
        self._node = ""
        self._below: dict[str, list[tuple[int, str]]] = {}
        self._roots: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        self._path.append(tag)
        if len(self._path) > _MOST_NESTED:
            raise DamagedError
        if name == CHART + "ser":
            self._series.append(_Series())
        elif tag in ("numCache", "strCache", "numLit", "strLit"):
            self._code = GENERAL
        elif name == CHART + "pt":
            self._point = _whole(attributes.get("idx"))
            self._code = attributes.get("formatCode", self._code)
        elif tag in ("v", "t", "formatCode", "p"):
            self._text = self._text if tag == "t" else []
        elif name == DIAGRAM + "pt":
            self._node = attributes.get("modelId", "")
            if attributes.get("type", "node") in ("node", "asst"):
                self._nodes[self._node] = []
            elif attributes.get("type") == "doc":
                self._roots.append(self._node)
        elif name == DIAGRAM + "cxn" and attributes.get("type", "parOf") == "parOf":
            below = self._below.setdefault(attributes.get("srcId", ""), [])
            below.append((_whole(attributes.get("srcOrd")), attributes.get("destId", "")))

    def end(self, name: str) -> None:
        self._path.pop()
        tag = name.rpartition(" ")[2]
        text = "".join(self._text)
        if tag == "formatCode":
            self._code = text
        elif name == CHART + "v":
            self._value(text)
        elif name == A + "p" and text.strip():
            self._paragraph(" ".join(text.split()))
        if tag in ("v", "formatCode", "p"):
            self._text = []

    def characters(self, text: str) -> None:
        if self._path and self._path[-1] in ("v", "t", "formatCode"):
            self._text.append(text)

    def _value(self, text: str) -> None:
        text = " ".join(text.split())
        if "ser" not in self._path:
            if "title" in self._path:
                self._paragraph(text)
            return
        series = self._series[-1]
        if "tx" in self._path:
            series.name.append(text)
        for names, points in ((_CATEGORIES, series.categories), (_VALUES, series.values)):
            if any(each in self._path for each in names) and len(points) < _MOST_POINTS:
                is_number = "numCache" in self._path or "numLit" in self._path
                shown = _shown(text, self._code) if is_number else text
                # The levels of a category, the narrowest first.
                levels = filter(None, (shown, points.get(self._point)))
                points[self._point] = ", ".join(levels)[:_MOST_CATEGORY_CHARACTERS]

    def _paragraph(self, text: str) -> None:
        if self._node in self._nodes and "ptLst" in self._path:
            self._nodes[self._node].append(text)
        elif "title" in self._path:
            in_axis = any(each.endswith("Ax") for each in self._path)
            (self._axes if in_axis else self._titles).append(text)

    def chart_lines(self) -> Iterator[str]:
        """The chart's titles and its table."""
        if not (self._titles or self._axes or self._series):
            return
        yield strings.chart(" ".join(self._titles))
        if self._axes:
            yield strings.chart_axes(self._axes)
        # Charts of two kinds in one may have other categories each.
        tables: list[tuple[dict[int, str], list[_Series]]] = []
        for each in self._series:
            same = (series for names, series in tables if each.categories in (names, {}))
            if (of_table := next(same, None)) is None:
                tables.append((each.categories, [each]))
            else:
                of_table.append(each)
        for categories, of_table in tables:
            points = sorted({*categories, *(point for series in of_table for point in series.values)})
            yield "\t".join(["", *(" ".join(series.name) for series in of_table)]).rstrip("\t")
            for point in points:
                cells = (categories.get(point, ""), *(series.values.get(point, "") for series in of_table))
                yield "\t".join(cells).rstrip("\t")

    def diagram_lines(self) -> Iterator[str]:
        """The texts of a diagram, those below a node after it."""
        open_nodes = [(0, root) for root in reversed(self._roots)]
        left = dict(self._nodes)
        while open_nodes:
            level, node = open_nodes.pop()
            if text := " ".join(left.pop(node, ())):
                yield f"{'  ' * (level - 1)}- {text}"
            below = sorted(self._below.pop(node, ()), reverse=True)
            open_nodes += [(min(level + 1, _DEEPEST), each) for _, each in below]
        yield from (f"- {' '.join(texts)}" for texts in left.values() if texts)


def _shown(value: str, code: str) -> str:
    try:
        return number_text(float(value), code)
    except (ValueError, OverflowError):
        return value


def _whole(value: str | None) -> int:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 8 else 0
