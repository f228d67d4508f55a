"""Report: the measured figures of the window and their budgets."""

from __future__ import annotations

import statistics

from msgspec import Struct

from app.bench.cost import Cost
from app.bench.scenes import Scenes, Times

OPEN_MS = 400.0
FRAME_MS = 20.0  # 50 frames a second
FLUSH_MS = 8.0
RSS_BYTES = 250_000_000
START_S = 1.0
READY_S = 4.0
ADDED = 0.03


class WindowResults(Struct, frozen=True):
    """The measured figures; None or empty for parts that were not run."""

    starts_s: tuple[float, ...] = ()
    ready_s: tuple[float, ...] = ()
    scenes: Scenes | None = None
    cost: Cost | None = None


def report(results: WindowResults) -> str:
    """A table in Markdown."""
    rows: list[tuple[str, str, str, bool]] = []
    for name, found_s, limit_s in (
        ("Window up", results.starts_s, START_S),
        ("Worker ready", results.ready_s, READY_S),
    ):
        if found_s:
            middle_s = statistics.median(found_s)
            figure = f"{middle_s:.2f} s (longest {max(found_s):.2f})"
            rows.append((name, figure, f"≤ {limit_s:.1f} s", middle_s <= limit_s))
    if scenes := results.scenes:
        chat = f"{scenes.messages} messages, {scenes.tokens:,} tokens"
        rows += [
            (f"Opening a chat of {chat}", _times(scenes.open), "≤ 400 ms", scenes.open.p99_ms <= OPEN_MS),
            ("A frame while scrolling", _times(scenes.scroll), "≤ 20 ms", scenes.scroll.p99_ms <= FRAME_MS),
            ("A jump of the scroll bar", _times(scenes.jump), "", True),
            ("A flush of 4 tokens", _times(scenes.flush), "≤ 8 ms", scenes.flush.p99_ms <= FLUSH_MS),
        ]
        for number, times in enumerate(scenes.flush_paragraph):
            name = f"… into one paragraph, from token {number * 1000:,} on"
            rows.append((name, _times(times), "≤ 8 ms", times.p99_ms <= FLUSH_MS))
        rss = f"{scenes.rss_bytes / 1e6:.0f} MB"
        rows.append(("Memory with that chat", rss, "≤ 250 MB", scenes.rss_bytes <= RSS_BYTES))
    if results.cost:
        added = sorted(results.cost.added)
        middle = statistics.median(added)
        figure = f"{middle:+.1%} ({len(added)} pairs, {added[0]:+.1%} to {added[-1]:+.1%})"
        rows.append(("Decode time the window adds", figure, "≤ 3%", middle <= ADDED))
        rows.append(("One core's time for the window", f"{results.cost.busy:.1%}", "", True))
    lines = ["| Measured | Median, 99th percentile, longest | Budget | |", "|:--|:--|:--|:--|"]
    for what, figure, budget, kept in rows:
        lines.append(f"| {what} | {figure} | {budget} | {_verdict(budget, kept)} |")
    return "\n".join(lines) + "\n"


def _times(times: Times) -> str:
    return f"{times.median_ms:.1f}, {times.p99_ms:.1f}, {times.longest_ms:.1f} ms"


def _verdict(budget: str, kept: bool) -> str:
    return "" if not budget else "kept" if kept else "missed"
