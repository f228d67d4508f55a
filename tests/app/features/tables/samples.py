"""Tables as a worker lists them, of families that exist nowhere."""

from __future__ import annotations

from datetime import datetime

from core.events import LearnedTable, ModelInfo, TableDay, TableFigures, TableInfo, TableTeacher

NOW = datetime(2026, 11, 21, 14, 30)
QWEN, LLAMA, SMOL = "ab" * 32, "cd" * 32, "9c" * 32
MODEL = ModelInfo(
    "Qwen3 4B",
    "path",
    QWEN,
    "Qwen3-4B",
    "qwen3",
    "bfloat16",
    "",
    4 * 10**9,
    8 * 10**9,
    32768,
    151_936,
    36,
    True,
)

LOADED = TableInfo(
    QWEN,
    "Qwen3-4B",
    16,
    TableFigures(412_306, 4_194_304, 500_000, 10, 90_000, 48_912, 1000, 640),
    (TableTeacher("Qwen3 14B", 71), TableTeacher("Qwen3 4B", 29)),
    (TableDay("2026-10-24", 90_000, 100, 40), TableDay("2026-11-20", 412_306, 900, 600)),
    NOW.timestamp() - 3_000_000,
    NOW.timestamp() - 120,
    2_400_000,
    True,
    True,
    1_204,
)
ON_DISK = TableInfo(
    LLAMA,
    "Meta-Llama-3.1-8B-Instruct",
    16,
    TableFigures(2_500_000, 4_194_304),
    updated_s=NOW.timestamp() - 40 * 86_400,
    size_bytes=12_345,
)
SHIPPED = LearnedTable(
    "smollm2.grams.safetensors",
    SMOL,
    "SmolLM2-135M-Instruct",
    "auto",
    True,
    "107,642 places in answers of SmolLM2 135M",
    151_234,
    1_117_384,
    NOW.timestamp(),
)
