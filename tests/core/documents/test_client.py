"""A document read in a process of its own: its text, its bounds, and whatever becomes of the process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.documents.client import DocumentReading
from core.documents.limits import Limits
from core.documents.reading import DocumentLine
from core.errors import RequestError
from core.system.reader_process import StoppedError
from tests.core.documents.made import paragraph, pdf_of, pdf_of_streams, write_docx


def _child(code: str) -> list[str]:
    return [sys.executable, "-P", "-c", code]


def test_the_text_and_how_far_it_is_come_from_the_process(tmp_path: Path) -> None:
    file = tmp_path / "handbook.pdf"
    file.write_bytes(pdf_of(["North quay", "South quay"]))
    heard: list[DocumentLine] = []
    reading = DocumentReading(file)
    assert reading.run(heard.append).text == "North quay\n\nSouth quay"
    assert heard[0] == DocumentLine(0, 2, "pages")
    with pytest.raises(ProcessLookupError):
        os.kill(reading.pid or 0, 0)


def test_refusals_come_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "torn.pdf").write_bytes(b"%PDF-1.4\n1 0 obj")
    with pytest.raises(RequestError, match=r"“torn\.pdf” is damaged") as refused:
        DocumentReading(tmp_path / "torn.pdf").run()
    assert refused.value.hint == "Check the file."


def test_a_folder_with_modules_of_its_own_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "core", "pathlib", "zipfile", "pypdfium2"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "a.docx").write_bytes(write_docx(tmp_path / "b.docx", paragraph("words")).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert DocumentReading(Path("a.docx")).run().text == "words"


@pytest.mark.sweep
def test_a_page_that_does_not_fit_in_memory_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "plan.pdf"
    line = b"BT /F1 12 Tf 20 200 Td (Hello) Tj ET\n"
    file.write_bytes(pdf_of_streams([line, *[b" " * 100_000_000] * 3, line]))
    with pytest.raises(RequestError, match="takes more than 537 MB of memory to read"):
        DocumentReading(file).run()


def test_memory_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "wide.html"
    file.write_text("<p>" + "x" * 30_000_000)
    with pytest.raises(RequestError) as refused:
        DocumentReading(file, Limits(memory_bytes=64_000_000)).run()
    assert refused.value.message == "“wide.html” takes more than 64 MB of memory to read."
    assert refused.value.hint == "Paste the part that matters."


def test_time_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "slow.pdf"
    file.write_bytes(pdf_of(["Quay) Tj (" * 4000 + str(page) for page in range(400)]))
    with pytest.raises(RequestError, match=r"“slow\.pdf” could not be read in 1 s"):
        DocumentReading(file, Limits(whole_s=1.0)).run()


def test_text_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_bytes(b"line\n" * 1000)
    with pytest.raises(RequestError, match=r"“log\.txt” holds more than 4,000 characters"):
        DocumentReading(file, Limits(characters=4000)).run()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.kill(os.getpid(), 9)", "cannot be read: its reader was ended by SIGKILL."),
        (
            "import os; os.abort()",
            "cannot be read: its reader was aborted, usually because it needs more than",
        ),
        ("raise SystemExit(3)", "cannot be read: its reader ended with status 3."),
        ("print('{}}')", "cannot be read: JSON is malformed"),
        ("import time; time.sleep(60)", "cannot be read: no progress for 1 s."),
        ("import sys\nwhile True: sys.stdout.write('x' * 1000000)", "holds more than 8,000,000 characters."),
    ],
)
def test_whatever_the_process_does_is_told_in_words(tmp_path: Path, code: str, message: str) -> None:
    reading = DocumentReading(tmp_path / "a.txt", Limits(silence_s=1.0), _child(code))
    with pytest.raises(RequestError) as refused:
        reading.run()
    assert refused.value.message.startswith(f"“a.txt” {message}")


def test_a_process_that_cannot_be_started_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"“a\.txt” cannot be read: its reader could not be started"):
        DocumentReading(tmp_path / "a.txt", command=[str(tmp_path / "nothing")]).run()


def test_a_reading_can_be_stopped_before_and_while_it_runs(tmp_path: Path) -> None:
    early = DocumentReading(tmp_path / "a.txt")
    early.stop()
    with pytest.raises(StoppedError):
        early.run()
    late = DocumentReading(tmp_path / "a.txt", command=_child("import time; time.sleep(60)"))
    timer = threading.Timer(0.5, late.stop)
    timer.start()
    with pytest.raises(StoppedError):
        late.run()
    timer.join()


def test_a_reader_ends_with_who_started_it(tmp_path: Path) -> None:
    file = tmp_path / "slow.pdf"
    file.write_bytes(pdf_of(["Quay) Tj (" * 4000 + str(page) for page in range(400)]))
    starter = os.fork()
    if starter == 0:
        reading = DocumentReading(file)

        def started(progress: DocumentLine) -> None:
            (tmp_path / "pid").write_text(f"{reading.pid}")
            os.kill(os.getpid(), signal.SIGKILL)

        reading.run(started)
        os._exit(1)
    os.waitpid(starter, 0)
    pid = int((tmp_path / "pid").read_text())
    assert _within(60, lambda: not Path(f"/proc/{pid}").exists() or _is_gone(pid))


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + seconds
    while not done():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.05)
    return True


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Ended, and nobody asked for its status yet.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
