"""The results of `bench tables`, and what they say in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.bench.environment import Environment
from core.bench.pieces import PieceProgress
from core.bench.tables.table_conversation import WarmRow
from core.bench.tables.table_learned import LearnedRow
from core.bench.tables.table_replay import FrozenRow, PoisonRow, SizeRow
from core.bench.tables.table_timing import TimingRow


class TableResults(Struct, frozen=True):
    """All of one run of the bench; parts that did not run are empty."""

    bench: str
    environment: Environment
    streams: str
    progress: PieceProgress
    conversation: tuple[WarmRow, ...] = ()
    learned: tuple[LearnedRow, ...] = ()
    sizes: tuple[SizeRow, ...] = ()
    frozen: tuple[str, ...] = ()
    modes: tuple[FrozenRow, ...] = ()
    lengths: tuple[FrozenRow, ...] = ()
    poison: tuple[PoisonRow, ...] = ()
    timing: tuple[TimingRow, ...] = ()


def write_report(results: TableResults) -> str:
    """The results as Markdown."""
    lines = ["# Tables", "", *results.progress.lines, results.environment.line, ""]
    if results.conversation:
        lines += [
            "## Cold and warm: a conversation of edits",
            "",
            "Turn 0 is the whole conversation. “cost” is the speed-up at the CPU's cost table.",
            "",
            "| drafter | table warmed by | turn | pairs | tokens | accepted cold | warm | tok/s cold | warm"
            " | speed-up | cost | output |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|",
            *(_warm_line(row) for row in results.conversation),
            "",
        ]
    if results.learned:
        lines += [
            "## Tables learned beforehand, real decoding",
            "",
            "Speed over plain decoding on the same prompts, in turn; “all” is the mean over prompts. Prompts"
            " whose answers have no decode time have nothing to compare and are in no mean.",
            "",
            "| drafter, table | kind | prompts | speed-up | mean a step | output |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row.configuration} | {row.kind} | {row.prompts} | {_speed_up(row)}"
            f" | {row.mean_per_step:.2f} | {_same(row.equal)} |"
            for row in results.learned
        ]
        lines += [""]
    if results.sizes:
        lines += [
            "## Table size, ngram-mod at the CPU's cost table",
            "",
            f"{results.streams}: every answer given, tokens of other chats, every answer given again.",
            "",
            "| slots | other tokens | first time | again | accepted again | occupancy | overwrites |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| 2^{row.slots.bit_length() - 1} | {row.other_tokens:,} | {row.first:.3f} | {row.again:.3f}"
            f" | {row.acceptance:.0%} | {row.occupancy:.2%} | {row.overwrites:,} |"
            for row in results.sizes
        ]
        lines += [""]
    for title, rows in (("Cacheback's tables", results.modes), ("LL × FL, both tables", results.lengths)):
        if rows:
            names = list(rows[0].speeds)
            lines += [f"## {title}", "", _where_from(results.frozen), ""]
            lines += ["| tables | LL | FL | tree | mean a step | " + " | ".join(names) + " |"]
            lines += ["|---|---|---|---|---|" + "---|" * len(names)]
            lines += [
                f"| {row.mode} | {row.leader_tokens} | {row.follower_tokens} | {row.tree_tokens or 'planned'}"
                f" | {row.mean_per_step:.2f} | "
                + " | ".join(f"{row.speeds[name]:.3f}" for name in names)
                + " |"
                for row in rows
            ]
            lines += [""]
    if results.poison:
        lines += [
            "## Poison",
            "",
            "Speed over plain decoding: with nothing learned, with all of the poison in each answer, and with"
            " it in the first only.",
            "",
            "| drafter | always wrong | cost | clean | in each | at first |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {r.drafter} | {r.poison} | {r.cost} | {r.clean:.3f} | {r.each:.3f} | {r.once:.3f} |"
            for r in results.poison
        ]
        lines += [""]
    if results.timing:
        lines += ["## Saving and loading", ""]
        lines += ["| slots | entries | KiB | snapshot ms | save ms | load ms |", "|---|---|---|---|---|---|"]
        lines += [
            f"| 2^{r.slots.bit_length() - 1} | {r.entries:,} | {r.size_bytes / 1024:,.0f}"
            f" | {r.snapshot_ms:.1f} | {r.save_ms:.1f} | {r.load_ms:.1f} |"
            for r in results.timing
        ]
        lines += [""]
    return "\n".join(lines)


def _speed_up(row: LearnedRow) -> str:
    if not row.compared:
        return "nothing to compare"
    only = f", of {row.compared} prompts" if row.compared < row.prompts else ""
    return f"{row.speed_up:.2f}{only}"


def _warm_line(row: WarmRow) -> str:
    return (
        f"| {row.drafter} | {row.warmed_by} | {row.turn} | {row.pairs} | {row.tokens}"
        f" | {row.cold_acceptance:.0%} ({row.cold_accepted})"
        f" | {row.warm_acceptance:.0%} ({row.warm_accepted}) | {row.cold_tokens_per_s:.1f}"
        f" | {row.warm_tokens_per_s:.1f} | {row.speed_up:.2f} | {row.steps_saved:.2f}"
        f" | {_same(row.equal)} |"
    )


def _where_from(frozen: Sequence[str]) -> str:
    if frozen:
        return f"Frozen tables: {', '.join(frozen)}."
    return "Frozen tables of each half of the streams from the other half."


def _same(equal: bool) -> str:
    return "equal" if equal else "**different**"
