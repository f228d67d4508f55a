"""The report of `draftlight bench`: tables by case and configuration, medians and ratios of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.bench.runner import table
from core.events.bench import Group, Pair, Record, groups, median

# Above this share of repeated tokens an answer is a loop, and its speed says little.
LOOP = 0.3


def report(records: Sequence[Record], heading: str) -> list[str]:
    """The results as Markdown."""
    found = groups(records)
    lines = [
        f"{heading}. Ratios are medians of pairs, each of them mlx-lm's `stream_generate` and Draftlight in"
        " turn; an answer of a single step has no decode time and is in no ratio. “÷ off”: relative to plain"
        " decoding by Draftlight. “Host ms a step”: from the ids of a step to the start of the next forward"
        " pass, in which the device waits; of passes that were not started ahead.",
    ]
    decoded = [group for group in found if any(pair.stats.tokens > 1 for pair in group.pairs)]
    if decoded:
        lines += ["", "## Decoding", "", *table(_DECODING, map(_decoding, decoded))]
    lines += ["", "## First token", "", *table(_FIRST, map(_first, found))]
    pairs = [(record, turn, pair) for record in records for turn, pair in enumerate(record.pairs, 1)]
    compared = [pair for _, _, pair in pairs if pair.compared]
    equal = sum(pair.equal for pair in compared)
    lines += ["", "## Outputs", "", f"{equal} of {len(compared)} compared outputs are equal to mlx-lm's."]
    lines += [
        f"- {_place(record, turn)}: {_difference(pair)}" for record, turn, pair in pairs if not pair.equal
    ]
    for title, section in (
        ("Accepted of tested, by position in the draft", _positions(found)),
        ("Two models: mlx-lm's own speculative path", _two_models(found)),
        ("Requested but not applied", _changes(records)),
    ):
        held = list(dict.fromkeys(section))
        lines += ["", f"## {title}", "", *held] if held else []
    return lines


_DECODING = (
    "case | configuration | pairs | ratio (least to most) | ÷ off | tok/s | mlx-lm tok/s | accepted"
    " | tokens a step | repeated | draft µs (median, 99%) | host ms a step | equal"
)


def _decoding(group: Group) -> str:
    repeated = max(pair.repeated for pair in group.pairs)
    return (
        f"{group.case} | {group.configuration} | {len(group.pairs)} | {_spread(group)}"
        f" | {_figure(median(group.off_ratios), 2)}"
        f" | {_figure(group.median(lambda pair: pair.stats.tokens_per_s))}"
        f" | {_figure(group.median(lambda pair: pair.plain_tokens_per_s))}"
        f" | {group.acceptance:.0%} | {group.mean_per_step:.2f}"
        f" | {repeated:.0%}{' (loop)' if repeated > LOOP else ''}"
        f" | {group.median(lambda pair: pair.stats.draft_us_median):.0f},"
        f" {group.median(lambda pair: pair.stats.draft_us_p99):.0f}"
        f" | {_figure(group.median(lambda pair: pair.stats.host_ms_median))}"
        f" | {_equal(group)}"
    )


_FIRST = (
    "case | configuration | first token s | mlx-lm s | sooner | read | of | scoring s | 1 ÷ (r + k)"
    " | peak MB | mlx-lm MB"
)


def _first(group: Group) -> str:
    """r: scoring time / dense time; k: the share that was read. 1 ÷ (r + k) is SpecPrefill's cost model."""
    sparse = [pair for pair in group.pairs if pair.stats.skipped_tokens]
    return (
        f"{group.case} | {group.configuration} | {group.median(lambda pair: pair.stats.ttft_s):.3f}"
        f" | {group.median(lambda pair: pair.plain_ttft_s):.3f}"
        f" | {group.median(lambda pair: pair.plain_ttft_s / pair.stats.ttft_s):.2f}"
        f" | {group.median(lambda pair: pair.stats.read_tokens):,.0f}"
        f" | {group.median(lambda pair: pair.stats.prompt_tokens):,.0f}"
        f" | {_figure(group.median(lambda pair: pair.stats.score_s), 2)}"
        f" | {_figure(median([_predicted(pair) for pair in sparse]), 2)}"
        f" | {max(pair.peak_bytes for pair in group.pairs) / 1e6:,.0f}"
        f" | {max(pair.plain_peak_bytes for pair in group.pairs) / 1e6:,.0f}"
    )


def _predicted(pair: Pair) -> float:
    stats = pair.stats
    return 1.0 / (stats.score_s / pair.plain_ttft_s + stats.read_tokens / stats.prompt_tokens)


def _spread(group: Group) -> str:
    """The median and the range of the ratios."""
    ratios = group.ratios
    return f"**{group.ratio:.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})" if ratios else "nothing to compare"


def _figure(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}" if value else "–"


def _equal(group: Group) -> str:
    if not any(pair.compared for pair in group.pairs):
        return "not compared"
    return "all" if group.equal == len(group.pairs) else f"**{group.equal} of {len(group.pairs)}**"


def _place(record: Record, turn: int) -> str:
    of_turn = f", turn {turn}" if len(record.pairs) > 1 else ""
    return f"{record.id}{of_turn}, {record.configuration}, pair {record.repeat}"


def _difference(pair: Pair) -> str:
    found = pair.difference
    assert found is not None
    place = f"token {found.index + 1} is “{found.plain_text}” in plain decoding and “{found.text}” here"
    if found.margin is None or found.margin_at_width is None:
        return f"{place}; one answer is longer"
    return (
        f"{place}; margin {found.margin:.2g} at width 1, {found.margin_at_width:.2g} at width {found.width};"
        f" {'within' if found.explained else 'NOT within'} the model's differences between widths"
    )


def _positions(found: Sequence[Group]) -> Iterable[str]:
    for group in found:
        if places := ", ".join(f"{each.accepted}/{each.tested}" for each in group.positions):
            yield f"- {group.case}, {group.configuration}: {places}"


def _two_models(found: Sequence[Group]) -> Iterable[str]:
    for group in found:
        if speed := group.median(lambda pair: pair.two_models_per_s):
            plain = group.median(lambda pair: pair.plain_tokens_per_s)
            times = _figure(speed / plain, 2)
            yield f"- {group.case}, {group.configuration}: {speed:.1f} tok/s, {times} times plain"


def _changes(records: Sequence[Record]) -> Iterable[str]:
    for record in records:
        for pair in record.pairs:
            for each in pair.changes:
                used = f"{each.setting} {each.asked} ran as {each.used}"
                yield f"- {record.configuration}: {used}, because {each.reason}"
