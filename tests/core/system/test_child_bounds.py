"""The bounds that a child sets itself, on systems that set none for it."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: what is watched is the most that a process ever held.
_HOLDS_MUCH = """
import threading
from core.system.child_bounds import held_bytes, watch

noticed = threading.Event()
watch(held_bytes() + 50_000_000, noticed.set)
assert not noticed.wait(0.2)
much = b"x" * 120_000_000
assert noticed.wait(5)
"""


def test_memory_beyond_the_bound_is_noticed() -> None:
    done = subprocess.run([sys.executable, "-c", _HOLDS_MUCH], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
