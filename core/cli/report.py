"""`draftlight doctor --report FILE`: measures this machine within a time budget and writes one Markdown file.

Each section is the output of a command of Draftlight, in order of importance, in a separate process. One
that cannot begin is named as skipped; one that the budget ends is stopped as by Ctrl-C and keeps the lines it
has. The file is written after each section, so a crash loses one section. Everything unexpected is repeated
at the top, under Anomalies.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from core.errors import reason_of
from core.system.children import (
    CHILD_FOLDER,
    absolute_path,
    absolute_reference,
    child_command,
    child_environment,
)
from core.system.files import write_atomic

MINUTES = 10
# Time in which a command may print its results after Ctrl-C: a running forward pass ends first.
_GRACE_S = 10.0
# Enough of stderr to say why a command failed.
_REASON_CHARACTERS = 300


class Section(Struct, frozen=True):
    """A command of the report, and its limits.

    `share`: its part of the time left, so that later sections have time. `least_s`: it is skipped with less
    time. `doubtful`: words of output lines that are anomalies. `is_markdown`: whether its output is Markdown.
    """

    title: str
    words: tuple[str, ...]
    share: float = 1.0
    least_s: float = 0.0
    doubtful: tuple[str, ...] = ()
    is_markdown: bool = False


def sections(model: str, picture: Path, folder: Path) -> tuple[Section, ...]:
    """The sections of a report about `model`. `folder` takes the results of benches."""
    bench = ("bench", "--quiet", "--model", model, "--drafters")
    out = ("--out", str(folder / "decoding"))
    reading = ("--out", str(folder / "reading"), "--pairs", "1", "--max-tokens", "16")
    unequal = ("in plain decoding and",)
    return (
        Section("Machine", ("doctor",), 0.2, doubtful=("BROKEN ",)),
        Section("Smoke test", ("--smoke", "--model", model), 0.2, 20.0),
        Section("Screenshot", ("--screenshot", str(picture), "--model", model), 0.1, 20.0),
        Section(
            "Window",
            ("bench", "window", "--parts", "scenes", "--out", str(folder / "window")),
            share=0.15,
            least_s=30.0,
            doubtful=("| missed |",),
            is_markdown=True,
        ),
        Section("Command buffers", ("doctor", "--try-buffers", model), 0.15, doubtful=("failed",)),
        Section(
            "Decoding",
            (*bench, "off,auto", *out, "--cases", "three-class"),
            share=0.3,
            doubtful=unequal,
            is_markdown=True,
        ),
        Section(
            "Reading",
            (*bench, "auto", *reading, "--cases", "document", "--prompt-tokens", "8000"),
            share=0.15,
            doubtful=unequal,
            is_markdown=True,
        ),
        Section(
            "Blocks and exactness",
            ("models", "profile", "--quiet", "--model", model),
            doubtful=("not kept", "no drafting on this machine"),
        ),
    )


class Report:
    """Runs sections for at most `seconds` and writes `file` after each. `say` receives each section's title.

    `about`: the measured machine and model, for the top.
    """

    def __init__(
        self,
        file: Path,
        seconds: float,
        say: Callable[[str], object] = lambda title: None,
        about: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._about, self._say = file, about, say
        self._seconds, self._clock, self._end_s = seconds, clock, clock() + seconds
        self._text: list[str] = []
        self.anomalies: list[str] = []
        self.skipped: list[str] = []

    def run(self, chosen: Sequence[Section], command: Callable[..., list[str]] = child_command) -> None:
        """Runs the sections; `command` makes a command line of a section's words. Raises `OSError`."""
        self.write()  # an unwritable file is noticed before anything is measured
        for section in chosen:
            left_s = self._end_s - self._clock()
            if left_s <= section.least_s:
                self.skipped.append(section.title)
                continue
            self._say(section.title)
            self._text += ["", f"## {section.title}", ""]
            lines = self._output(section, command(*section.words), min(left_s, section.share * self._seconds))
            self._text += lines if section.is_markdown else ["```", *lines, "```"]
            found = (line for line in lines if any(words in line for words in section.doubtful))
            self.anomalies += [f"{section.title}: {line.strip('-| ')}" for line in found]
            self.write()
        self.write()

    def _output(self, section: Section, command: Sequence[str], within_s: float) -> list[str]:
        """The lines that a command prints, until its time is over."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    command, env=child_environment(), cwd=CHILD_FOLDER, stdout=out, stderr=err
                )
            except OSError as error:
                self.anomalies.append(f"{section.title} failed: {reason_of(error)}.")
                return []
            try:
                status = process.wait(within_s)
            except subprocess.TimeoutExpired:
                status = 0
                self.skipped.append(f"the rest of {section.title}")
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)
            finally:
                process.kill()
                process.wait()
            out.seek(0)
            err.seek(0)
            if status:
                reason = " ".join(err.read().decode(errors="replace").split())[-_REASON_CHARACTERS:]
                self.anomalies.append(f"{section.title} failed with status {status}: {reason}".rstrip(": "))
            lines = out.read().decode(errors="replace").splitlines()
            # Headings of a command's own report are below that of its section.
            return [f"##{line}" if line.startswith("#") else line for line in lines]

    def write(self) -> None:
        """Writes the sections that exist."""
        found = [f"- {each}" for each in self.anomalies] or ["None was seen."]
        skipped = ["", f"Skipped for lack of time: {', '.join(self.skipped)}."] if self.skipped else []
        head = ["# Draftlight on this machine", "", self._about, "", "## Anomalies", "", *found, *skipped]
        text = "\n".join([*head, *self._text, ""])
        # People send the file, and their home's name is often their own.
        write_atomic(self._file, text.replace(str(Path.home()), "~").encode())


def run_report(file: str, model: str, minutes: float, say: Callable[[str], object]) -> Report:
    """Measures `model` for about `minutes` at most and writes `file`, with a picture of the window.

    Raises `OSError` if the file cannot be written.
    """
    path = Path(absolute_path(file))
    began = time.strftime("%Y-%m-%d %H:%M %Z")
    about = f"Model {model}, begun {began}, at most {minutes:g} minutes."
    report = Report(path, 60 * minutes, say, f"{about} The window: {path.stem}.png.")
    with tempfile.TemporaryDirectory() as folder:
        report.run(sections(absolute_reference(model), path.with_suffix(".png"), Path(folder)))
    return report
