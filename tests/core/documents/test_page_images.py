"""Pages of PDFs as images: what is drawn, how large, and what a hostile file can do."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow

from core.documents.client import DocumentReading, PageReading
from core.documents.images import describe
from core.documents.limits import PageLimits
from core.documents.page_images import SIDE_PX, PageImage, page_images
from core.documents.reading import hash_of_file, read_document
from core.errors import RequestError
from core.events import Scans
from core.system.reader_process import StoppedError
from tests.core.documents.made import pdf_of_streams
from tests.core.documents.scanned import BLUE, GREEN, RED, Color, Scan, write_scanned

CASES = Path(__file__).with_name("cases") / "pdf"
TEXT = "The report of the harbor, with more words than a stamp on a picture of a page has. " * 2


def scans_of(path: Path) -> Scans:
    found = read_document(path, scans=True).scans
    assert found
    return found


def drawn(path: Path, *numbers: int) -> list[Pillow.Image]:
    """The pages as they are drawn."""
    lines = page_images(path, _hash(path), numbers or scans_of(path).pages)
    return [opened(line.image) for line in lines if line.image]


def opened(page: PageImage | RequestError) -> Pillow.Image:
    assert isinstance(page, PageImage)
    image = Pillow.open(io.BytesIO(page.data))
    assert image.size == (page.width, page.height)
    return image


def colors(page: Pillow.Image) -> tuple[Color, Color, Color, Color]:
    """Near the corners: left top, right top, left bottom, right bottom."""
    width, height = page.size
    places = [(x, y) for y in (0.02, 0.98) for x in (0.02, 0.98)]
    found = [page.convert("RGB").getpixel((int(x * width), int(y * height))) for x, y in places]
    assert all(isinstance(each, tuple) for each in found)
    return tuple(found)  # type: ignore[return-value]


def near(found: tuple[Color, ...], *wanted: Color) -> bool:
    return all(abs(a - b) < 12 for one, other in zip(found, wanted) for a, b in zip(one, other))


def test_pages_without_text_are_named_with_their_file(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "a.pdf", ["Words.", Scan(), TEXT, Scan(words="Received"), Scan()])
    read = DocumentReading(path).run()
    assert read.scans
    assert read.scans.pages == (2, 4, 5)
    assert Path(read.scans.path) == path
    assert "[page 2 has no text: it is a picture]" in read.text
    assert not read.refusal
    assert read_document(write_scanned(tmp_path / "b.pdf", ["Words.", TEXT])).scans is None


def test_a_page_with_text_beside_a_picture_is_read_as_text(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "a.pdf", [Scan(words=TEXT, box=(900, 400))])
    assert read_document(path, scans=True).scans is None
    assert read_document(path, scans=True).text.startswith("The report")


def test_a_file_of_scans_is_refused_unless_its_pages_are_wanted(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "scan.pdf", [Scan(), Scan()])
    with pytest.raises(RequestError, match="no text layer"):
        DocumentReading(path).run()
    read = DocumentReading(path, scans=True).run()
    assert read.scans
    assert read.scans.pages == (1, 2)
    assert read.refusal
    assert (
        read.refusal.message
        == "“scan.pdf” holds no text: this PDF has no text layer, only pictures of pages."
    )
    letters = read_document(CASES / "no-letters-at-all.pdf", scans=True)
    assert letters.scans
    assert letters.refused.endswith("its fonts give no letters.")


def test_a_blank_page_is_no_scan(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds no text"):
        read_document(CASES / "blank.pdf", scans=True)


def test_a_page_is_drawn_as_a_viewer_shows_it(tmp_path: Path) -> None:
    pages = [Scan(), "Words.", Scan(GREEN, RED, turn=90), Scan(turn=180), Scan(words="Received 3 May")]
    first, turned, upside_down, stamped = drawn(write_scanned(tmp_path / "a.pdf", pages))
    assert near(colors(first), RED, BLUE, RED, BLUE)
    assert near(colors(turned), GREEN, GREEN, RED, RED)
    assert near(colors(upside_down), BLUE, RED, BLUE, RED)
    assert turned.size == first.size[::-1]
    assert stamped.tobytes() != first.tobytes()


def test_hidden_layers_are_not_drawn() -> None:
    """Their words must not reach a model by another way."""
    path = CASES / "layers.pdf"
    (line,) = page_images(path, _hash(path), [1])
    assert line.image
    image = opened(line.image).convert("L")
    scale = image.height / 792
    inked = {
        base
        for base in range(580, 720, 20)  # of the seven lines, in points from the bottom
        if image.crop((0, int((780 - base) * scale), image.width, int((792 - base) * scale))).getextrema()[0]
        < 128  # type: ignore[operator]
    }
    assert inked == {700, 580}  # the others are hidden, white or invisible


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hash_of_file(stream)


@pytest.mark.parametrize(
    ("box", "size"),
    [
        ((595, 842), (1085, SIDE_PX)),  # A4
        ((14_400, 14_400), (SIDE_PX, SIDE_PX)),  # the largest that a file may give
        ((1e6, 1e7), (154, SIDE_PX)),
        ((1e9, 10), (SIDE_PX, 8)),  # no strip is thinner than an image may be
        ((72, 36), (300, 150)),  # 300 an inch
        ((0.001, 300), (8, 1250)),
    ],
)
def test_a_page_of_any_size_has_bounded_pixels(
    box: tuple[float, float], size: tuple[int, int], tmp_path: Path
) -> None:
    (page,) = drawn(write_scanned(tmp_path / "a.pdf", [Scan(box=box)]), 1)
    assert page.size == size


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "a.pdf", ["Words.", Scan()])
    scans = scans_of(path)
    write_scanned(path, ["Words.", Scan(GREEN)])
    with pytest.raises(RequestError, match=r"“a\.pdf” has changed since it was attached"):
        list(PageReading(scans).images([2]))
    path.unlink()
    with pytest.raises(RequestError, match="is not a file"):
        list(PageReading(scans, name="a.pdf").images([2]))


@pytest.mark.parametrize("name", ["locked.pdf", "encrypted.pdf"])
def test_a_file_with_a_password_is_refused_and_one_of_an_owner_is_drawn(name: str) -> None:
    reading = PageReading(Scans(str(CASES / name), _hash(CASES / name), (1,)))
    if name == "locked.pdf":
        with pytest.raises(RequestError, match="locked with a password"):
            list(reading.images([1]))
    else:
        ((_, page),) = reading.images([1])
        assert opened(page)


def test_a_process_draws_the_same_and_tells_which_pages_are_not_there(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "a.pdf", ["Words.", Scan()])
    (number, missing), (other, good) = PageReading(scans_of(path)).images([9, 2])
    assert (number, other) == (9, 2)
    assert isinstance(missing, RequestError)
    assert missing.message == "Page 9 of “a.pdf” cannot be shown to the model: the file has no such page."
    (here,) = drawn(path, 2)
    assert opened(good).tobytes() == here.tobytes()
    assert isinstance(good, PageImage)
    (tmp_path / "page.jpg").write_bytes(good.data)
    described = describe(tmp_path / "page.jpg")
    assert (described.hash, described.width, described.height) == (good.hash, good.width, good.height)


def test_a_page_that_exceeds_the_memory_is_told_and_the_next_is_drawn(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.pdf"
    bomb.write_bytes(pdf_of_streams([b"q ", *[b" " * 100_000_000] * 3, b" Q"]))
    scans = Scans(str(bomb), _hash(bomb), (1,))
    limits = PageLimits(memory_bytes=200_000_000)
    ((_, first), (_, second)) = PageReading(scans, limits).images([1, 7])
    assert isinstance(first, RequestError)
    assert first.message.startswith("Page 1 of “bomb.pdf” cannot be shown to the model: ")
    assert "200 MB of memory" in first.message
    assert isinstance(second, RequestError)
    assert "no such page" in second.message


def test_a_picture_that_unpacks_to_a_billion_pixels_is_bounded(tmp_path: Path) -> None:
    path = write_scanned(tmp_path / "a.pdf", ["Words.", Scan(pixels=(100_000, 100_000)), Scan()])
    (_, bomb), (_, good) = PageReading(scans_of(path)).images([2, 3])
    if isinstance(bomb, PageImage):  # PDFium reads it line by line, or leaves it out, as viewers do
        assert max(bomb.width, bomb.height) <= SIDE_PX
    assert near(colors(opened(good)), RED, BLUE)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time; time.sleep(60)", "drawing it takes too long"),
        ("import os; os.abort()", "its reader was aborted, usually because it needs more than 1,074 MB"),
        ("print('nonsense', flush=True)", "malformed"),
        ("pass", "the page is damaged"),
        # One that exceeds the memory tells its page and ends.
        ("""print('{"page": 2, "problem": "too large"}', flush=True)""", "too large"),
    ],
)
def test_however_the_process_ends_each_page_has_an_answer(code: str, why: str, tmp_path: Path) -> None:
    scans = scans_of(write_scanned(tmp_path / "a.pdf", ["Words.", Scan(), Scan()]))
    limits = PageLimits(silence_s=0.5 if "sleep" in code else 60.0)
    reading = PageReading(scans, limits, [sys.executable, "-c", code])
    for number, page in reading.images([2, 3]):
        assert isinstance(page, RequestError)
        assert page.message.startswith(f"Page {number} of “a.pdf” cannot be shown to the model: ")
        assert why in page.message


def test_a_reading_that_is_stopped_draws_no_page(tmp_path: Path) -> None:
    scans = scans_of(write_scanned(tmp_path / "a.pdf", ["Words.", Scan(), Scan()]))
    early = PageReading(scans)
    early.stop()
    with pytest.raises(StoppedError):
        next(early.images([2]))
    between = PageReading(scans)
    pages = between.images([2, 3])
    next(pages)
    between.stop()
    with pytest.raises(StoppedError):
        list(pages)


def test_a_changed_hash_is_never_drawn(tmp_path: Path) -> None:
    scans = scans_of(write_scanned(tmp_path / "a.pdf", ["Words.", Scan()]))
    with pytest.raises(RequestError, match="has changed"):
        list(PageReading(replace(scans, hash="0" * 64)).images([2]))
