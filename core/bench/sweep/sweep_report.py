"""A sweep's results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from core.bench.statistic import known, median
from core.events.sweep import SweepResults


def write_report(results: SweepResults) -> str:
    """All of them, as far as they go."""
    lines = [
        "# Sweep of the Lab",
        "",
        f"{results.model}, {results.repeats} pairs a prompt, at most {results.max_tokens} new tokens, greedy,"
        f" exactness “{results.exactness}”; plain is `mlx_lm.stream_generate` on the same model, in turn with"
        f" each drafted answer. {results.answers:,} answers in {results.took_s / 60:.1f} min"
        f"{'' if results.ended else ', not ended'}. Ratios are medians of pairs.",
        "",
        results.machine,
    ]
    return (
        "\n".join([*lines, *_speeds(results), *_parity(results), *_turns(results), *_keeps(results)]) + "\n"
    )


def _speeds(results: SweepResults) -> list[str]:
    if not results.cells:
        return []
    lines = [
        "",
        "## Speed",
        "",
        "| class | prompt | drafter | ratio | least | most | tok/s | plain tok/s | accepted | mean a step |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in results.cells:
        ratios = known(pair.ratio for pair in c.pairs)
        three = (median(ratios), min(ratios), max(ratios)) if ratios else None
        lines.append(
            f"| {c.kind} | {c.prompt + 1} | {c.drafter}"
            f" | {' | '.join(f'{ratio:.2f}' for ratio in three) if three else 'nothing to compare | – | –'}"
            f" | {_speed(p.tokens_per_s for p in c.pairs)} | {_speed(p.plain_tokens_per_s for p in c.pairs)}"
            f" | {c.acceptance:.0%} | {c.mean_per_step:.2f} |"
        )
    lines += ["", "## Accepted of tested, by place in the draft", ""]
    for c in results.cells:
        places = ", ".join(f"{p.accepted}/{p.tested}" for p in c.positions)
        lines.append(f"- {c.kind} {c.prompt + 1}, {c.drafter}: {places or 'nothing was drafted'}")
    said = sorted(
        {
            f"{c.drafter}: {x.asked} ran as {x.used}, because {x.reason}"
            for c in results.cells
            for x in c.changes
        }
    )
    return [*lines, "", "## Asked for and not done", "", *(f"- {line}" for line in said)] if said else lines


def _speed(tokens_per_s: Iterable[float]) -> str:
    found = known(tokens_per_s)
    return f"{median(found):.1f}" if found else "–"


def _parity(results: SweepResults) -> list[str]:
    pairs = [(c, number, p) for c in results.cells for number, p in enumerate(c.pairs, 1)]
    if not pairs:
        return []
    equal = sum(pair.equal for _, _, pair in pairs)
    lines = [
        "",
        "## Same text as plain decoding",
        "",
        f"{equal} of {len(pairs)} drafted answers are identical.",
    ]
    for c, number, pair in pairs:
        if pair.difference is not None:
            by = "one is longer" if pair.margin is None else f"margin {pair.margin:.2g} at width 1"
            close = (
                ", a close call"
                if pair.close_call
                else ", NOT a close call"
                if pair.margin is not None
                else ""
            )
            lines.append(
                f"- {c.kind} {c.prompt + 1}, {c.drafter}, pair {number}: from token {pair.difference + 1} on"
                f" ({by}{close})"
            )
    return lines


def _turns(results: SweepResults) -> list[str]:
    if not results.turns:
        return []
    lines = [
        "",
        "## Turn by turn",
        "",
        "| conversation | drafter | turn | tok/s | plain tok/s | output |",
        "|---|---|---|---|---|---|",
    ]
    for t in results.turns:
        lines.append(
            f"| {t.kind} | {t.drafter} | {t.turn} | {t.tokens_per_s:.1f} | {t.plain_tokens_per_s:.1f}"
            f" | {'equal' if t.equal else '**different**'} |"
        )
    return lines


def _keeps(results: SweepResults) -> list[str]:
    lines: list[str] = []
    if results.readings:
        lines += [
            "",
            "## Reading less",
            "",
            "| scorer | keep | read | TTFT s | dense TTFT s (mlx-lm) | ran |",
            "|---|---|---|---|---|---|",
        ]
    for r in results.readings:
        lines.append(
            f"| {r.scorer} | {r.keep_pct:g}% | {r.read_tokens:,} of {r.prompt_tokens:,} | {r.ttft_s:.2f}"
            f" | {r.plain_ttft_s:.2f} | {r.ran}{': ' + r.reason if r.ran == 'dense' and r.reason else ''} |"
        )
    if results.likenesses:
        lines += [
            "",
            "The next token is the one that reading everything gives:",
            "",
            "| scorer | keep | agreement | documents | tokens |",
            "|---|---|---|---|---|",
        ]
    for s in results.likenesses:
        lines.append(f"| {s.scorer} | {s.keep_pct:g}% | {s.agreement:.1%} | {s.documents} | {s.tokens} |")
    return lines
