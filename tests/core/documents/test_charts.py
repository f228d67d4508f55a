"""Charts and diagrams: their titles, and the values and texts in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.documents.reading import document_text
from tests.core.documents.made import relations, write_docx, write_pptx

_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_C = f'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" {_A}'
_D = f'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" {_A}'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def _title(text: str) -> str:
    return f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{text}</a:t></a:r></a:p></c:rich></c:tx></c:title>"


def _cache(kind: str, *values: str, code: str = "") -> str:
    format_code = f"<c:formatCode>{code}</c:formatCode>" if code else ""
    points = "".join(
        f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values) if value
    )
    return f"<c:{kind}Ref><c:f>S!A1</c:f><c:{kind}Cache>{format_code}{points}</c:{kind}Cache></c:{kind}Ref>"


def _series(name: str, categories: str, *values: str) -> str:
    of = f"<c:cat>{categories}</c:cat>" if categories else ""
    shown = _cache("num", *values, code="0%")
    return f"<c:ser><c:tx>{_cache('str', name)}</c:tx>{of}<c:val>{shown}</c:val></c:ser>"


_YEARS = _cache("num", "45292", "45658", code="yyyy")
CHART = (
    f"<c:chartSpace {_C}><c:chart>{_title('Growth')}<c:plotArea><c:barChart>"
    f"{_series('North', _YEARS, '0.5', '0.25')}{_series('South', '', '', '1')}</c:barChart>"
    f"<c:lineChart>{_series('Other', _cache('str', 'May'), '0.1')}</c:lineChart>"
    f"<c:catAx>{_title('Year')}</c:catAx></c:plotArea></c:chart></c:chartSpace>"
)
CHART_TEXT = "Chart: Growth\nAxes: Year\n\tNorth\tSouth\n2024\t50%\n2025\t25%\t100%\n\tOther\nMay\t10%"


def _node(identifier: str, text: str, kind: str = "node") -> str:
    words = f"<dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t>"
    return f'<dgm:pt modelId="{identifier}" type="{kind}">{words}</dgm:pt>'


def _below(above: str, identifier: str, order: int, kind: str = "parOf") -> str:
    return f'<dgm:cxn type="{kind}" srcId="{above}" destId="{identifier}" srcOrd="{order}"/>'


# A node below itself is not read twice.
DIAGRAM = (
    f"<dgm:dataModel {_D}><dgm:ptLst>{_node('0', '', 'doc')}{_node('1', 'second')}{_node('2', 'first')}"
    f"{_node('3', 'inner')}{_node('4', 'no', 'pres')}{_node('5', 'loose')}</dgm:ptLst><dgm:cxnLst>"
    f"{_below('0', '1', 1)}{_below('0', '2', 0)}{_below('2', '3', 0)}{_below('3', '2', 0)}"
    f"{_below('0', '5', 0, 'presOf')}</dgm:cxnLst></dgm:dataModel>"
)
DIAGRAM_TEXT = "- first\n  - inner\n- second\n- loose"
FRAMES = f'<c:chart {_C} {_R} r:id="chart"/>', f'<dgm:relIds {_D} {_R} r:dm="data"/>'


@pytest.mark.parametrize(
    ("frame", "part", "text"), [(FRAMES[0], CHART, CHART_TEXT), (FRAMES[1], DIAGRAM, DIAGRAM_TEXT)]
)
def test_a_drawing_of_a_slide_and_of_a_document(tmp_path: Path, frame: str, part: str, text: str) -> None:
    graphic = f"<a:graphic {_A}><a:graphicData>{frame}</a:graphicData></a:graphic>"
    of_part = relations({"chart": "drawn.xml", "diagramData#data": "drawn.xml"})
    slides = write_pptx(
        tmp_path / "a.pptx",
        [f"<p:graphicFrame>{graphic}</p:graphicFrame>"],
        more={"ppt/slides/_rels/slide1.xml.rels": of_part, "ppt/slides/drawn.xml": part},
    )
    assert document_text(slides) == f"## Slide 1\n\n{text}"
    word = write_docx(
        tmp_path / "a.docx",
        f"<w:p><w:r><w:t>Before</w:t></w:r><w:r><w:drawing>{graphic}</w:drawing></w:r></w:p>",
        more={"word/_rels/document.xml.rels": of_part, "word/drawn.xml": part},
    )
    assert document_text(word) == f"Before\n{text}"
