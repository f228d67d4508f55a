"""The README's moving picture: an edit raced without and with drafting, from the real window: `make tour`.

The race is recorded with a real worker, then its replay is walked through frame by frame at the speed
it was recorded at. ImageMagick puts the frames together.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.launch.scenario import Deadline, run_scenario

if TYPE_CHECKING:
    from app.shell.window import MainWindow

_TIMEOUT_S = 600.0
_FRAMES_PER_S = 6
# The last frame is shown longer, so that it can be read.
_LAST_FRAME_S = 4.0
_WINDOW_PX = (960, 720)
_COLORS = 48
_TOKENS = 112
EDIT = """Write these ships as a JSON list:

name: Aurora, berth: 4, length_m: 120
name: Borealis, berth: 7, length_m: 95
name: Cormorant, berth: 2, length_m: 60
name: Dunlin, berth: 9, length_m: 142
"""


def run_tour(out: str, model: str = "starter") -> int:
    """Saves the animated picture to the file `out`. Returns 0, or 1 after a message on stderr."""
    convert = shutil.which("magick") or shutil.which("convert")
    if not convert:
        print("ImageMagick is not installed: no `magick` or `convert` on the PATH.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        if code := run_scenario(lambda window: _frames(window, Path(folder)), model, scheme="light"):
            return code
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        *frames, last = map(str, sorted(Path(folder).glob("*.png")))
        delay = ["-delay", str(100 // _FRAMES_PER_S)]
        last_delay = ["-delay", str(round(100 * _LAST_FRAME_S))]
        # One palette for all frames and no dithering, so that unchanged areas are left out of each frame.
        small = ["+dither", "-colors", str(_COLORS), "+remap"]
        small += ["-layers", "OptimizePlus"]
        shown = [*delay, *frames, *last_delay, last, *small]
        subprocess.run([convert, "-loop", "0", *shown, out], check=True)
    print(out)
    return 0


async def _frames(window: MainWindow, folder: Path) -> None:
    """Records the race and grabs its replay. Raises `ScenarioFailed`."""
    deadline = Deadline(_TIMEOUT_S)
    await deadline.until_ready(window)
    window.resize(*_WINDOW_PX)
    window.menu_actions["race"].trigger()
    page = window.views.race
    page.prompt.question.set_value(EDIT)
    page.prompt.drafter.set_value("auto")
    page.prompt.most_tokens.set_value(_TOKENS)
    page.start_button.click()
    await deadline.until(window, lambda: page.replay.playing, "Not in time: the race is recorded.")
    count = round(page.replay.end_s * _FRAMES_PER_S) + 1
    for number in range(count + 1):
        page.chart.sought.emit(min(number / _FRAMES_PER_S, page.replay.end_s))
        await asyncio.sleep(0)
        page.grab().save(str(folder / f"{number:05}.png"))
    print(f"{count + 1} frames; {page.headline.text()}. {page.verdict.text()}")


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m app.bench.tour --out FILE.gif`."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.tour")
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="starter")
    options = parser.parse_args(argv)
    return run_tour(options.out, options.model)


if __name__ == "__main__":
    sys.exit(main())
