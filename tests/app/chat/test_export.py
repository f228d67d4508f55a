"""Chats as HTML and PDF."""

from __future__ import annotations

import base64
import io
import re
from datetime import datetime, timedelta, timezone
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from pypdf import PdfReader
from PySide6.QtWidgets import QApplication

from app.chat.export import ExportOptions, blocks, formulas_in, page, to_pdf
from app.session.chats.conversation import Answer, Conversation, Turn
from core.events import Attachment, Image, Message
from tests.app.chat.written import finished, tokens_of

ANSWER = """<think>
The ferry is slow, I think.
</think>
# Ferries

The {**fast**|ferry^ sails} at *nine* and costs `18 €`; see https://example.org/a?b=1&c=2.

1. First
   - Inner <b>tag</b>
2. Second

> Quoted words.

| place | price |
|---|---:|
| שלום | 18 |
| Æ & co | 7 |

```python
def fare(n):
    return n  *  18  # <crowns>
```

Area: $\\alpha^2 \\leq \\frac{1}{2}$ and ~~not~~ this.

בערפל המעבורת נשארת.
"""
QUESTION = Message("user", "When & <where>?\n  indented", (Attachment("ferry.md", "Secret text."),))


def chat(answer: str = ANSWER, question: Message = QUESTION) -> Conversation:
    turn = Turn("t", question, Answer(tuple(tokens_of(answer)), "finished", finished()))
    return Conversation("c", datetime(2026, 5, 4, 17, 0).astimezone(timezone(timedelta(hours=9)))).with_turns(
        (turn,)
    )


def html(of: Conversation, thoughts: bool = False, tints: bool = False) -> str:
    return "".join(page(of, ExportOptions(thoughts, tints), "Ferry <times>"))


def pdf(of: Conversation, thoughts: bool = False, tints: bool = False) -> PdfReader:
    options = ExportOptions(thoughts, tints)
    return PdfReader(io.BytesIO(to_pdf("Ferry times", blocks(of, options, "Ferry times"))))


class _Balanced(HTMLParser):
    """Fails where an element is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> _Balanced:
    parser = _Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_has_everything_as_it_is_shown() -> None:
    made = html(chat())
    text = read(made).text
    for words in (
        "Ferry <times>",
        "2026-05-04",
        "When & <where>?",
        "ferry.md",
        "Inner <b>tag</b>",
        "Quoted words.",
        "Æ & co",
        "python",
        "    return n  *  18  # <crowns>",
        r"$\alpha^2 \leq \frac12$",  # without the formulas, which `formulas_in` returns
        "בערפל",
        "toy",
    ):
        assert words in text, words
    assert "<b>fast</b>" in made
    assert "<i>nine</i>" in made
    assert "<code>18 €</code>" in made
    assert 'href="https://example.org/a?b=1&amp;c=2"' in made
    assert '<td align="right">18</td>' in made
    assert 'dir="rtl"' in made
    assert "Secret text." not in text
    assert "<script" not in made
    assert "src=" not in made


@pytest.mark.parametrize("kind", ["html", "pdf"])
def test_thoughts_and_tints_are_there_if_wanted(qapp: QApplication, kind: str) -> None:
    def text(**options: bool) -> str:
        if kind == "html":
            return html(chat(), **options)
        return " ".join("".join(each.extract_text() for each in pdf(chat(), **options).pages).split())

    assert "The ferry is slow" not in text()
    assert "The ferry is slow" in text(thoughts=True)
    if kind == "html":
        assert 'class="accepted"' not in text()
        assert 'class="accepted"' in text(tints=True)
        assert 'class="bonus"' in text(tints=True)
        assert html(chat("{a| b| c^ d}"), tints=True).count('class="accepted"') == 1
    else:
        accepted = (0.81, 0.93, 0.88)
        assert accepted not in fills(pdf(chat()))
        assert accepted in fills(pdf(chat(), tints=True))


def fills(reader: PdfReader) -> set[tuple[float, ...]]:
    """The colours that the first page is painted with."""
    content = reader.pages[0].get_contents()
    return {
        tuple(round(float(each), 2) for each in operands)
        for operands, operator in content.operations
        if operator in (b"scn", b"rg") and len(operands) == 3
    }


def test_the_pdf_has_real_text_embedded_fonts_and_page_numbers(qapp: QApplication) -> None:
    long = "\n\n".join(f"Paragraph {n} about ferries. " + "They sail at nine. " * 12 for n in range(80))
    reader = pdf(chat(ANSWER + "\n\n" + long + "\n\nThe very end."))
    assert len(reader.pages) > 3
    assert reader.metadata.title == "Ferry times"
    texts = [each.extract_text() for each in reader.pages]
    for number, text in enumerate(texts, 1):
        assert text.split()[-1] == str(number)
    whole = " ".join(" ".join(texts).split())
    assert "\t" not in "".join(texts)
    for words in (
        "2026-05-04 17:00",
        "When & <where>?",
        "Inner <b>tag</b>",
        "Quoted words.",
        "Æ & co",
        "The very end.",
    ):
        assert words in whole, words
    assert re.search(r"return n\s+\*\s+18\s+# <crowns>", whole)
    for n in range(80):
        assert f"Paragraph {n} about" in whole
    fonts = [font.get_object() for each in reader.pages for font in each["/Resources"]["/Font"].values()]
    for font in fonts:
        (inner,) = font["/DescendantFonts"]
        descriptor = inner.get_object()["/FontDescriptor"].get_object()
        assert any(key in descriptor for key in ("/FontFile", "/FontFile2", "/FontFile3"))


def _drawn(size: tuple[int, int], colour: tuple[int, int, int]) -> bytes:
    stream = io.BytesIO()
    Pillow.new("RGB", size, colour).save(stream, "PNG")
    return stream.getvalue()


_KEPT = {"a" * 64: _drawn((960, 480), (200, 30, 40)), "b" * 64: _drawn((40, 30), (20, 90, 200))}
_NAMED = {"a" * 64: "receipt.png", "b" * 64: 'small "<b>".png', "c" * 64: "gone & away.png"}
PICTURED = Message(
    "user",
    "What do they show?",
    images=tuple(Image(name, "", key, 1920, 960) for key, name in _NAMED.items()),
)


def picture(image: Image) -> bytes | None:
    return _KEPT.get(image.hash)


def test_the_page_has_the_images_in_it_and_names_a_missing_one() -> None:
    made = "".join(page(chat(question=PICTURED), ExportOptions(), "Ferry", picture=picture))
    text = read(re.sub(r"<img [^>]*>", "", made)).text
    found = re.findall(
        r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)"[^>]* (width="\d+" height="\d+")>', made
    )
    assert [(base64.b64decode(data), unescape(name), size) for data, name, size in found] == [
        (_KEPT["a" * 64], "receipt.png", 'width="480" height="240"'),
        (_KEPT["b" * 64], _NAMED["b" * 64], 'width="40" height="30"'),  # not enlarged
    ]
    assert made.count("src=") == 2
    assert "The image “gone & away.png” is missing." in text
    assert [f"Image: {name}" in text for name in _NAMED.values()] == [True, True, False]
    # Before the question's text, as in the window.
    assert made.index("base64") < made.index("What do they show?")


def test_the_pdf_has_the_images_in_it_beside_formulas(qapp: QApplication) -> None:
    asked = chat("Area: $\\sum_a^b \\sqrt 2$ now.", PICTURED)
    formulas = formulas_in(asked)
    assert formulas
    parts = blocks(asked, ExportOptions(), "Ferry", formulas, picture)
    reader = PdfReader(io.BytesIO(to_pdf("Ferry", parts, formulas=formulas, pictures=_KEPT)))
    images = [each.image.convert("RGB") for one in reader.pages for each in one.images]
    assert [each.size for each in images] == [(960, 480), (40, 30)]
    for shown, wanted in zip(images, ((200, 30, 40), (20, 90, 200)), strict=True):
        assert all(abs(a - b) < 12 for a, b in zip(shown.getpixel((20, 15)), wanted, strict=True))
    text = " ".join(" ".join(each.extract_text() for each in reader.pages).split())
    assert "Image: receipt.png" in text
    assert re.search("The image “gone & away.png. is missing", text)
    assert "Area:" in text


@pytest.mark.sweep
def test_lines_are_neither_cut_nor_outside_the_page(qapp: QApplication) -> None:
    """Very long words, lines and tables, and code over a page's end."""
    code = "```\n" + "\n".join(f"line {n} " + "x" * (n * 7) for n in range(60)) + "\n```"
    reader = pdf(chat(f"{code}\n\n{'y' * 1_500}\n\n" + "word " * 1_000))
    found: list[tuple[float, float]] = []

    def visit(text: str, cm: list[float], tm: list[float], font: object, size: float) -> None:
        if text.strip():
            found.append((cm[0] * tm[4] + cm[4], cm[3] * tm[5] + cm[5]))

    texts = [each.extract_text(visitor_text=visit) for each in reader.pages]
    whole = "".join("".join(texts).split())
    assert whole.count("y") >= 1_500
    assert whole.count("word") >= 1_000  # Qt repeats the line above each page, outside of what is shown
    assert all(f"line{n}" in whole for n in range(60))
    width, height = (float(each) for each in reader.pages[0].mediabox[2:])
    assert all(0 <= x <= width and -height <= y <= 2 * height for x, y in found)


# Words after the opening of a code block are not part of its text.
@given(st.text(max_size=100).filter(lambda text: "```" not in text and "~~~" not in text))
def test_any_text_gives_whole_elements_and_loses_no_letter(text: str) -> None:
    made = html(chat("x", Message("user", text)), thoughts=True)
    shown = read(made).text
    letters = [c for c in text if c.isalnum()]
    for letter in set(letters):
        assert unescape(shown).count(letter) >= letters.count(letter)


@given(st.text(alphabet="ab *_`#>|-1.[]()\n<think>/$~:é\u05d0", max_size=200))
def test_any_markdown_gives_whole_elements(text: str) -> None:
    read(html(chat(text or "x"), thoughts=True, tints=True))


@pytest.mark.sweep
def test_a_table_that_begins_low_on_a_page_fills_the_next_ones(qapp: QApplication) -> None:
    names = ("Quantity", "Responsible", "Description", "Region", "Status", "Owner", "Notes", "Date")
    rows = "\n".join(f"| {' | '.join(f'{name[:3]}{row:02}' for name in names)} |" for row in range(60))
    table = f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n{rows}\n"
    made = pdf(chat("A line.\n\n" * 20 + table))
    texts = [each.extract_text() for each in made.pages]
    assert len(texts) <= 3
    for text in texts[1:]:  # words are whole, and the head of the table is on each page
        assert all(name in text for name in names)
    assert all(f"Qua{row:02}" in "".join(texts) for row in range(60))


def test_the_window_can_stop_it(tmp_path: Path, qapp: QApplication) -> None:
    seen = 0

    def check() -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            raise RuntimeError("closing")

    with pytest.raises(RuntimeError, match="closing"):
        to_pdf("T", (f"<p>{n}</p>" for n in range(9)), check)
    assert seen == 2
