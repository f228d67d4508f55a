"""The sentence encoder in answers: loaded only where it is used, released for room, without growth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_START = """
import gc, os, sys
from pathlib import Path
from core.models.runtime import prepare
prepare()
from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message
from core.settings import Settings, assign_all
from tests.core.toy import write_toy_model

folder = Path(sys.argv[1])
write_toy_model(folder, max_position_embeddings=4096)
engine = Engine()
engine.load(str(folder))
engine.loaded.eos = frozenset()

def answer(number, **values):
    text = "".join(f"Berth {number} of line {line} waits for tide {line * number}. " for line in range(30))
    messages = (Message("user", f"Which tide for line {number % 30}?", (Attachment("a.txt", text),)),)
    fixed = {"sampling.max_tokens": 2, "prefill.memory_mib": 0, "tables.learn": False}
    chosen = assign_all(Settings(), [*fixed.items(), *((k.replace("__", "."), v) for k, v in values.items())])
    *_, finished = engine.generate(Generate("r", messages, chosen))
    assert isinstance(finished, Finished)
    return finished.effective
"""

_OFF = """
for values in ({"prefill__mode": "off"}, {"prefill__mode": "on", "prefill__scorer": "lexical"}):
    answer(1, **values)
assert not [name for name in ("core.encoder.encoder", "core.encoder.encoder") if name in sys.modules]
"""

_MANY = """
def resident_mb():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

held = []
for number in range(1, 17):
    assert answer(number, prefill__mode="on").scorer == "fusion"
    if number % 2 == 0:
        engine.make_room(engine._left_bytes() + 1)
        engine.load(str(folder))
        engine.loaded.eos = frozenset()
        held.append(resident_mb())
print(max(held[4:]) - max(held[:4]))
"""


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _START + program, str(folder / "toy")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_it_is_loaded_where_meaning_is_not_compared(tmp_path: Path) -> None:
    run(_OFF, tmp_path)


@pytest.mark.sweep
def test_many_answers_with_it_loaded_and_released_hold_no_more_memory(tmp_path: Path) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("resident memory is read from /proc")
    assert float(run(_MANY, tmp_path)) < 10
