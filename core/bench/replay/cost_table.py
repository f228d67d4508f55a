"""T(w): what a verify block of w tokens costs, as a multiple of a plain step. Named tables.

Between measured widths it is interpolated; above the last it goes on with the last slope. The
shipped tables are published or measured figures with their source, so that a replay means the
same everywhere.
"""

from __future__ import annotations

from bisect import bisect_left

from msgspec import Struct

from core.errors import RequestError


class CostTable(Struct, frozen=True):
    """`points` are (width, cost) in ascending width, from (1, 1.0) on."""

    name: str
    source: str
    points: tuple[tuple[int, float], ...]

    def cost(self, width: int) -> float:
        """T(width)."""
        widths = [w for w, _ in self.points]
        at = bisect_left(widths, width)
        if at < len(widths) and widths[at] == width:
            return self.points[at][1]
        # Two neighbours, or the last two where the table has ended.
        at = min(max(at, 1), len(self.points) - 1)
        (w0, c0), (w1, c1) = self.points[at - 1], self.points[at]
        return c0 + (c1 - c0) * (width - w0) / (w1 - w0)


def _mean(name: str, source: str, tables: tuple[CostTable, ...]) -> CostTable:
    widths = sorted({w for table in tables for w, _ in table.points})
    return CostTable(name, source, tuple((w, sum(t.cost(w) for t in tables) / len(tables)) for w in widths))


_CPU_256 = CostTable(
    "cpu-256",
    "SmolLM2-135M, float32 with OpenBLAS, 2 cores, context 256",
    (
        *((1, 1.00), (2, 1.18), (3, 1.24), (4, 1.30), (5, 1.52), (8, 1.48)),
        *((12, 1.80), (16, 1.84), (32, 2.66), (64, 4.59)),
    ),
)
_CPU_1024 = CostTable(
    "cpu-1024",
    "SmolLM2-135M, float32 with OpenBLAS, 2 cores, context 1024",
    (
        *((1, 1.00), (2, 1.18), (3, 1.31), (4, 1.36), (5, 1.53), (8, 1.64)),
        *((12, 2.15), (16, 2.33), (32, 4.25), (64, 6.59)),
    ),
)
_M3_MAX = CostTable(
    "m3-max",
    "M3 Max, 4-bit 5120 to 17408 matmul (mlx issue 3863); 10 to 32 rows cost about 4",
    ((1, 1.00), (2, 1.00), (4, 1.28), (6, 2.04), (8, 2.50), (9, 3.14), (10, 4.00), (32, 4.00), (64, 8.00)),
)
_M4_PRO = CostTable(
    "m4-pro",
    "M4 Pro, MLP block (mlx issue 3839)",
    ((1, 1.00), (2, 1.03), (3, 1.22), (4, 1.47), (6, 2.07), (8, 2.69)),
)

COST_TABLES: dict[str, CostTable] = {
    table.name: table
    for table in (
        _mean("cpu", "the two CPU tables averaged", (_CPU_256, _CPU_1024)),
        _mean("apple", "m3-max and m4-pro averaged", (_M3_MAX, _M4_PRO)),
        _CPU_256,
        _CPU_1024,
        _M3_MAX,
        _M4_PRO,
    )
}


def cost_table(name: str) -> CostTable:
    """The table called `name`. Raises `RequestError` naming the known ones."""
    try:
        return COST_TABLES[name]
    except KeyError:
        raise RequestError(
            f"There is no cost table called “{name}”.", f"Choose one of {', '.join(COST_TABLES)}."
        ) from None
