"""Files of `cases`: each is read with these lines in this order, and this record of what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.documents.reading import read_document
from core.documents.strings import left_out_in_full

CASES = {
    "arabic-qt.pdf": ("الاجتماع يوم الأربعاء والإيجار 940 يورو.", "لا تأخير."),
    "cjk-numbers.docx": ("第一条 总则", "第二条 付款", "1st Schedule bir", "③ circled"),
    "code-table.html": ("def f(x):", "    if x:", "        return 1"),
    "empty-result.xlsx": ("Item\tPrice\tNote", "Lamp\t20", "Desk\t120\tcheck"),
    "equation.pptx": ("The law is E=mc^2 for mass.",),
    "flow-b.pdf": ("Check the roof", "and gutters", "of the north", "Any of these:", "Gap over 4 cm"),
    "form-check.docx": ("Smoker: [x] yes  [ ] no", "Country: Norway"),
    "hidden.xlsx": ("Region\tSum", "[left out: row 2, which the file hides]", "South\t20"),
    "hyphens.pdf": (
        "The landlord must give a written document within 14 days, and the well-known rule of 2024-",
    ),
    "invite.eml": ("See you there.", "LOCATION:Room 12"),
    "link.html": ("Download the form (https://files.example/form-12.pdf) before 3 May.",),
    "missing-page.epub": ("Chapter one: ebb.", "Chapter two: flood at 9.40."),
    "nested-table.docx": ("Room\tContents\tPrice", "Kitchen\tOven | 1; Chair | 4\t900", "Bath\tSink\t300"),
    "nul.log": ("2026-05-03 disk 91 percent full", "\ufffd" * 40, "2026-05-03 power lost, restarted"),
    "numbers.vtt": ("[00:01] The year was 1984", "[00:04] 3", "[00:05] 2", "[00:06] lift off"),
    "one-scanned-page.pdf": ("[page 2 has no text: it is a picture]", "Page three: signed in May."),
    "strike.docx": ("The fee is ~~5,000~~ 4,200 euros. ~~Clause 7 does not apply to pets.~~",),
    "superscript.pptx": ("Safe below 10⁵ cells per ml; area 40 m²; CO₂",),
    "svg-math.epub": ("High water 9.40", "It is 12+5 hours."),
    "text-box.xlsx": ("Revenue\t500", "[text box] All figures are in thousands of euros."),
    "vertical.pdf": ("東京の朝は早い。", "駅に人が集まる。", "電車は九時に出る。"),
}
LEFT_OUT = {
    "hidden.xlsx": "1 hidden sheet (Salaries), 1 hidden row (Sales, row 2), "
    "1 hidden column (Sales, column C)",
    "missing-page.epub": "1 missing page (OEBPS/c3.xhtml)",
    "nul.log": "40 damaged characters",
    "one-scanned-page.pdf": "1 scanned page (page 2)",
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_whole(name: str) -> None:
    document = read_document(Path(__file__).parent / "cases" / name)
    lines = iter(document.text.split("\n"))
    assert [line for line in CASES[name] if line in lines] == list(CASES[name])
    assert left_out_in_full(document.left_out).removeprefix("Not in the text: ") == LEFT_OUT.get(name, "")
