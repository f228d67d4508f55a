"""Exactness: the block widths that give the bits of a plain step, and the number of compared rows.

Kernels for one token and for several sum in different orders, so a token's logits at width 1 and at width w
may differ. In float32 the difference is frequent and tiny. In half precision and in quantised models it is
rare and large: nearly every sum rounds to the same value, and the one that does not grows from layer to
layer. A handful of rows is therefore no evidence. `compare.py` compares logits and the
cache bit by bit over thousands of rows; this module keeps the counts and turns them into a decoding mode:

    fast     any width; the choice as computed
    exact    widths without a difference in at least `LEAST_ROWS` rows each; nothing is drafted before

A difference found later removes its width for good. Past its sliding
window a block sees the columns of the cache in another order than a plain step (`RotatingKVCache` writes
single tokens in place and blocks into a new array), so `exact` never drafts there, whatever was measured.
"""

from __future__ import annotations

import os
from importlib.metadata import version

import mlx.core as mx
from msgspec import Struct
from msgspec.structs import replace

from core.decoding.answer import Exactness
from core.events import ModelInfo
from core.models.blas import threads_at_start
from core.models.memory import physical_bytes
from core.system.files import JsonStore
from core.system.macos import system_build

WIDTHS = tuple(range(2, 17))
# Rows compared at each width before `exact` uses it: 15,000 in all.
LEAST_ROWS = 1000
# Comparisons of a model whose sliding window leaves no room for exact drafts: they measure `noise` only.
_PAST_STREAMS = 16


class WidthRows(Struct, frozen=True):
    """Compared rows of one width, and the comparisons that ended in a difference."""

    width: int
    rows: int = 0
    differences: int = 0


class Profile(Struct, frozen=True):
    """Comparisons of one (model, dtype, machine, mlx version).

    - `model`, `folder`: the model's name and path.
    - `noise`: the largest difference of a logit, past the window included.
    - `window_tokens`: the smallest sliding window, 0 without one.
    - `longest_tokens`: the longest context of a comparison.
    - `streams`: number of comparisons.
    """

    key: str
    model: str = ""
    widths: tuple[WidthRows, ...] = tuple(map(WidthRows, WIDTHS))
    noise: float = 0.0
    window_tokens: int = 0
    longest_tokens: int = 0
    streams: int = 0
    folder: str = ""

    @property
    def identical_width(self) -> int:
        """The largest width up to which no difference was found; 1 if width 2 has one."""
        return min((each.width for each in self.widths if each.differences), default=WIDTHS[-1] + 1) - 1

    @property
    def exact_width(self) -> int:
        """The largest width up to which every width has `LEAST_ROWS` rows and no difference."""
        found = 1
        for each in self.widths:
            if each.differences or each.rows < LEAST_ROWS:
                break
            found = each.width
        return found

    @property
    def fits_window(self) -> bool:
        """Whether the sliding window, if any, has room for comparisons at every width."""
        return not self.window_tokens or self.window_tokens >= 2 * WIDTHS[-1] + 16

    @property
    def is_complete(self) -> bool:
        """Whether more rows could not increase `exact_width`."""
        if not self.fits_window:
            return self.streams >= _PAST_STREAMS
        return self.exact_width == self.identical_width

    @property
    def rows(self) -> int:
        """Rows compared at the widths without a difference."""
        return sum(each.rows for each in self.widths if each.width <= self.identical_width)

    def with_comparison(self, width: int, rows: int, *, identical: bool) -> Profile:
        """This profile after a comparison of `rows` rows at `width`, counted up to the first difference."""
        widths = tuple(
            WidthRows(each.width, each.rows + rows, each.differences + (not identical))
            if each.width == width
            else each
            for each in self.widths
        )
        return replace(self, widths=widths)

    @property
    def summary(self) -> str:
        """The guarantee of `exact` for this model, and the number of rows it is based on."""
        reach = f" in {self.rows:,} compared rows of contexts of up to {self.longest_tokens:,} tokens"
        if self.exact_width > 1:
            found = f"up to {self.exact_width} tokens at once gave the bits of plain steps{reach}"
        elif self.identical_width > 1 and self.fits_window:
            needed = LEAST_ROWS * (self.identical_width - 1)
            found = f"{self.rows:,} of {needed:,} rows compared; nothing is drafted before"
        elif not self.fits_window:
            found = f"no drafts past the sliding window of {self.window_tokens:,} tokens"
        else:
            found = "no drafting on this machine, because two tokens at once give other bits than plain steps"
        if self.window_tokens and self.exact_width > 1:
            found += f"; no drafts past the sliding window of {self.window_tokens:,} tokens"
        return found


def exactness(profile: Profile) -> Exactness:
    """The limits of `exact` for a model with this profile."""
    return Exactness("exact", profile.exact_width, profile.window_tokens or None, profile.summary)


# The version changes with the comparisons: earlier profiles have fewer rows or other ones.
PROFILES = JsonStore("exact-v3", Profile)


def load_profile(info: ModelInfo) -> Profile:
    """The saved profile of this model on this machine; an empty one if none is valid."""
    key = machine_key(info)
    return PROFILES.load(key) or Profile(key, info.name, folder=info.path)


def summaries() -> dict[tuple[str, str], str]:
    """The summary of each model with comparisons on this machine as it is now, by its folder and name."""
    here = f" {' '.join(map(str, machine_parts()))} "
    held = [each for each in PROFILES.all() if each.streams and here in each.key]
    return {(each.folder, each.model): each.summary for each in held}


def machine_key(info: ModelInfo) -> str:
    """Identifies a model on this machine: model, dtype, machines, `machine_parts` and OpenBLAS threads."""
    parts = (info.path, info.architecture, info.size_bytes, info.dtype, info.quantisation)
    return " ".join(map(str, (*parts, *machine_parts(), threads_at_start(), *info.machines)))


def machine_parts() -> tuple[object, ...]:
    """Dependencies of kernels: chip, memory in GB, GPU architecture, macOS build, mlx version, device.

    Not the host's name, which macOS changes with the network.
    """
    device = mx.device_info()
    chip = (device.get("device_name"), device.get("architecture"), os.cpu_count())
    memory_gb = round(physical_bytes() / 2**30)
    return (*chip, memory_gb, system_build(), version("mlx"), mx.default_device())
