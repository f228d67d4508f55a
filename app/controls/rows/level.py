"""Level: how what a row stands for is doing."""

from __future__ import annotations

from typing import Literal

# At work just now; as it should be; wrong; of no matter any more.
Level = Literal["live", "plain", "bad", "dim"]
