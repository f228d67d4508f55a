"""`draftlight models profile`: what a model's verify blocks cost on this machine, and how exact they are."""

from __future__ import annotations

import argparse

from core.cli.console.parser import add_model, add_quiet
from core.system.progress_line import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure T(w) again, compare widths until that is complete, print both. Raises `ModelError`."""
    from core.models.runtime.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    engine = Engine()
    with ProgressLine(options.quiet) as line:
        line.say(f"Loading {options.model}", now=True)
        info = engine.load(options.model)
        line.say("Timing verify blocks of 1 token and more", now=True)
        profile = engine.measure_cost()
        line.clear()
        print(f"{info.name}, {info.dtype}: time of a block of w tokens, in plain steps")
        for context in profile.contexts:
            base = context.seconds[1]
            costs = "  ".join(f"{width}: {seconds / base:.2f}" for width, seconds in context.seconds.items())
            print(
                f"  context {context.context_tokens:,} (plain step {base * 1000:.0f} ms)  {costs}", flush=True
            )
        if profile.doubt:
            print(
                f"  not kept: {profile.doubt}. Other programs use the processor; run this again without them."
            )
        line.say("Trying trees and long prompts", now=True)
        verdict = engine.try_out()
        line.clear()
        print(f"trees: {verdict.why_no_trees or 'exact'}")
        agreed = verdict.splits.agreed_tokens
        limit = "exact" if agreed is None else f"not beyond {agreed:,} tokens: {verdict.splits.reason}"
        print(f"drafts and reuse: {limit}", flush=True)
        line.say("Comparing blocks with plain steps (this can take minutes)", now=True)
        found = engine.exactness_profile(complete=True)
    print(f"exact: {found.summary}")
    print(
        f"guarded: logits differ by at most {found.noise:.2g}; closer choices than"
        f" {found.guard:.2g} are repeated"
    )
    return 0
