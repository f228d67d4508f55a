"""Files of `cases`: each is read as the file beside it says, to the last character.

Beside NAME, NAME.txt has the text that is read, and behind a line `=====` what is not in it; or, without a
text, why NAME is refused and what to do. A package of XML parts (a Word document, a workbook, a book) is a
text NAME.parts with each part behind a line `== PATH`; the case is the package made of them. The name of a
case says what it is there for.

    make goldens      rewrites the results; a commit that changes one gives the reason
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from core.documents.reading import read_document
from core.documents.strings import left_out_in_full
from core.errors import RequestError
from tests.core import golden

FOLDER = Path(__file__).with_name("cases")
_PART = re.compile(r"^== (.+)\n", re.MULTILINE)


def sources() -> list[Path]:
    """All files but results."""
    files = {path for path in FOLDER.rglob("*") if path.is_file()}
    return sorted(files - {result_of(path) for path in files})


def result_of(source: Path) -> Path:
    return source.with_name(f"{source.name.removesuffix('.parts')}.txt")


def document(source: Path, folder: Path) -> Path:
    """The file that is read, packed in `folder` if `source` has its parts."""
    if source.suffix != ".parts":
        return source
    path = folder / source.stem
    _, *found = _PART.split(source.read_text("utf-8"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in zip(found[::2], found[1::2], strict=True):
            # OpenDocument files and books begin with their type, uncompressed.
            packed = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(name, part.removesuffix("\n"), packed)
    return path


def outcome(path: Path) -> str:
    try:
        read = read_document(path)
    except RequestError as refusal:
        return f"=====\n{refusal.message}\n{refusal.hint}\n"
    left_out = left_out_in_full(read.left_out)
    return f"{read.text}\n=====\n{left_out}\n" if left_out else f"{read.text}\n"


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_file_is_read_as_the_file_beside_it_says(source: Path, tmp_path: Path) -> None:
    found = outcome(document(source, tmp_path)).encode()
    if golden.writes():
        result_of(source).write_bytes(found)
    assert found.decode() == result_of(source).read_bytes().decode()
