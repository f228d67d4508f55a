"""Figures: numbers as the strip writes them. Pure; no Qt.

Three significant digits where a figure moves ("58.4", "289"), thousands separated with commas,
memory in binary gigabytes as activity monitors count it.
"""

from __future__ import annotations

from dataclasses import dataclass

DASH = "–"


@dataclass(frozen=True)
class Figure:
    """A number and its small unit. The dash means "no figure"."""

    value: str = DASH
    unit: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is a number."""
        return self.value != DASH

    @property
    def text(self) -> str:
        """As one phrase: "58.4 tok/s"."""
        return f"{self.value} {self.unit}".strip()


def speed(tokens_per_s: float) -> str:
    """A speed for display: 58.4, 289, 1,204."""
    return f"{tokens_per_s:.1f}" if tokens_per_s < 99.95 else f"{tokens_per_s:,.0f}"


def seconds(value_s: float) -> str:
    """0.41, 24.3, 112."""
    if value_s < 9.995:
        return f"{value_s:.2f}"
    return f"{value_s:.1f}" if value_s < 99.95 else f"{value_s:,.0f}"


def percent(share: float) -> str:
    """64% for 0.64."""
    return f"{share * 100:.0f}%"


def count(number: int) -> str:
    """412,306."""
    return f"{number:,}"


def short_count(number: int) -> str:
    """8,192; from a million on 4.19 M."""
    return f"{number / 1e6:.3g} M" if number >= 1_000_000 else f"{number:,}"


def gigabytes(size_bytes: int) -> str:
    """11.2 for 11.2 × 2^30 bytes."""
    return f"{size_bytes / 2**30:.1f}"


def spoken_text(*parts: str | tuple[str, str]) -> str:
    """Joins texts of a row for assistive technology; leaves out a title whose value is empty or a dash."""
    texts = [part if isinstance(part, str) else _spoken_pair(*part) for part in parts]
    return ", ".join(filter(None, texts))


def _spoken_pair(title: str, value: str) -> str:
    return f"{title} {value}" if value not in ("", DASH) else ""
