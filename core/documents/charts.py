"""Charts and SmartArt diagrams of Office files to text.

A chart is its title, the titles of its axes, and a table with a row per category and a column per series: the
values that the file stores for its appearance, in the format of the chart. A diagram is the list of its texts
by level.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar, NamedTuple

from core.documents import strings
from core.documents.equations import equation_line
from core.documents.number_formats import GENERAL, shown_number
from core.documents.parts import (
    BROKEN,
    CHART,
    CHART_EX,
    DIAGRAM,
    Element,
    M,
    R,
    Relations,
    Walker,
    read_tree,
    whole,
)
from core.documents.writer import Writer

_MOST_BYTES = 64 * 1024 * 1024
_MOST_POINTS = 20_000  # of a series
_DEEPEST = 8
_MOST_CATEGORY_CHARACTERS = 1_000


def drawing_text(archive: zipfile.ZipFile, part: str) -> str:
    """The lines of a chart or a diagram. Raises as `read_tree` does."""
    drawing = read_tree(archive, part, _MOST_BYTES)
    kinds = ((CHART, _chart_lines), (CHART_EX, _newer_chart_lines))
    lines = next((read for space, read in kinds if drawing.name.startswith(space)), _diagram_lines)
    return "\n".join(lines(drawing))


class OfficeWalker(Walker):
    """Writes a part of an Office file: equations, charts, diagrams, and elements handled by `actions`."""

    def __init__(self, archive: zipfile.ZipFile, part: str, writer: Writer) -> None:
        super().__init__(writer)
        self.archive, self.relations = archive, Relations(archive, part)
        self._drawings: dict[str, str] = {}

    def drawn(self, element: Element) -> str:
        """The lines of the chart or diagram that `element` refers to; empty for none."""
        part = self.relations.by_id.get(element.get(R + "id") or element.get(R + "dm"), "")
        if part in self.archive.NameToInfo and part not in self._drawings:
            try:
                self._drawings[part] = drawing_text(self.archive, part)
            except BROKEN:
                self._drawings[part] = "[object]"
                self.writer.gathered.leave_out("object")
        return self._drawings.get(part, "")

    def equation(self, element: Element) -> None:
        self.say(equation_line(element))

    def drawing(self, element: Element) -> None:
        """Write a chart or diagram as a separate paragraph."""
        self.writer.apart()
        self.writer.words(self.drawn(element))
        self.writer.close_paragraph()

    actions: ClassVar = {
        M + "oMath": equation,
        CHART_EX + "chart": lambda self, element: self.drawing(element),
        CHART + "chart": lambda self, element: self.drawing(element),
        DIAGRAM + "relIds": lambda self, element: self.drawing(element),
    }


class _Series(NamedTuple):
    """Categories and values by the index of their point, as shown."""

    name: str
    categories: dict[int, str]
    values: dict[int, str]


def _chart_lines(drawing: Element) -> Iterator[str]:
    """The chart's titles and its table."""
    titles = _titles(next(drawing.all("chart"), drawing))
    axes = [title for each in drawing.all() if each.tag.endswith("Ax") for title in _titles(each)]
    series = [
        _Series(
            " ".join(name.line() for name in each.child("tx").all("v")),
            _points(each.child("cat", "xVal")),
            _points(each.child("val", "yVal")),
        )
        for each in drawing.all("ser")
    ]
    yield from _lines(titles, axes, series)


def _newer_chart_lines(drawing: Element) -> Iterator[str]:
    """Lines of a chart of a kind newer than 2015, such as a waterfall; its data and series are separate."""
    chart = next((each for each in drawing.elements if each.tag == "chart"), drawing)
    axes = [title for each in chart.all("axis") for title in _titles(each)]
    data = {each.get("id"): each for each in drawing.child("chartData").elements if each.tag == "data"}
    series: list[_Series] = []
    for each in chart.all("series"):
        of = data.get(each.child("dataId").get("val"), Element(""))
        dimensions = {one.get("type"): one for one in of.elements if one.tag in ("strDim", "numDim")}
        names = " ".join(name.line() for name in each.child("tx").all("v"))
        numbers = [one for kind, one in dimensions.items() if one.tag == "numDim" and kind != "x"]
        categories = dimensions.get("cat", dimensions.get("x", Element("")))
        values = _newer_points(numbers[0] if numbers else dimensions.get("colorStr", Element("")))
        series.append(_Series(names, _newer_points(categories), values))
    yield from _lines(_titles(chart), axes, series)


def _newer_points(dimension: Element) -> dict[int, str]:
    points: dict[int, str] = {}
    for level in dimension.all("lvl"):
        code = level.get("formatCode", GENERAL) if dimension.tag == "numDim" else ""
        for each in islice(level.all("pt"), _MOST_POINTS):
            number = whole(each.get("idx"))
            shown = shown_number(each.line(), code) if code else each.line()
            points[number] = ", ".join(filter(None, (shown, points.get(number))))[:_MOST_CATEGORY_CHARACTERS]
    return points


def _lines(titles: list[str], axes: list[str], series: list[_Series]) -> Iterator[str]:
    """The title, the axes and the table of a chart."""
    if not (titles or axes or series):
        return
    yield strings.chart(" ".join(titles))
    if axes:
        yield strings.chart_axes(axes)
    # Charts of two kinds in one may have other categories each.
    tables: list[tuple[dict[int, str], list[_Series]]] = []
    for one in series:
        same = (of_table for names, of_table in tables if one.categories in (names, {}))
        if (found := next(same, None)) is None:
            tables.append((one.categories, [one]))
        else:
            found.append(one)
    for categories, of_table in tables:
        yield "\t".join(["", *(one.name for one in of_table)]).rstrip("\t")
        for point in sorted({*categories, *(point for one in of_table for point in one.values)}):
            cells = (categories.get(point, ""), *(one.values.get(point, "") for one in of_table))
            yield "\t".join(cells).rstrip("\t")


def _titles(element: Element) -> list[str]:
    """The paragraphs of the title of a chart or an axis, or the cells that it is taken from."""
    lines = (
        each.line("t") if each.tag == "p" else each.line() for each in element.child("title").all("p", "v")
    )
    return list(filter(None, lines))


def _points(element: Element) -> dict[int, str]:
    points: dict[int, str] = {}
    code = ""  # of numbers
    for each in element.all("numCache", "numLit", "strCache", "strLit", "formatCode", "pt"):
        if each.tag == "formatCode":
            code = each.text()
        elif each.tag != "pt":
            code = GENERAL if each.tag.startswith("num") else ""
        elif len(points) < _MOST_POINTS:
            text, number = each.line("v"), whole(each.get("idx"))
            shown = shown_number(text, each.get("formatCode", code)) if code else text
            # The levels of a category, the narrowest first.
            levels = filter(None, (shown, points.get(number)))
            points[number] = ", ".join(levels)[:_MOST_CATEGORY_CHARACTERS]
    return points


def _diagram_lines(drawing: Element) -> Iterator[str]:
    """The texts of a diagram, those below a node after it."""
    texts: dict[str, str] = {}
    below: dict[str, list[tuple[int, str]]] = defaultdict(list)
    open_nodes: list[tuple[int, str]] = []
    for each in drawing.all("pt", "cxn"):
        if each.name == DIAGRAM + "cxn" and each.get("type", "parOf") == "parOf":
            below[each.get("srcId")].append((whole(each.get("srcOrd")), each.get("destId")))
        elif each.name == DIAGRAM + "pt" and each.get("type", "node") in ("node", "asst"):
            texts[each.get("modelId")] = " ".join(filter(None, (line.line("t") for line in each.all("p"))))
        elif each.get("type") == "doc":
            open_nodes.insert(0, (0, each.get("modelId")))
    while open_nodes:
        level, node = open_nodes.pop()
        if text := texts.pop(node, ""):
            yield f"{'  ' * (level - 1)}- {text}"
        inside = sorted(below.pop(node, ()), reverse=True)
        open_nodes += [(min(level + 1, _DEEPEST), each) for _, each in inside]
    yield from (f"- {text}" for text in texts.values() if text)
