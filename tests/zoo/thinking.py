"""Thinking in public chat templates: `python -m tests.zoo.thinking` writes a table and its figures.

For each template: the variable that switches thinking, its default, and whether thought and answer are read
apart with thinking by default, on and off.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from core.answer_format import answer_format, parse_answer
from core.prompt.probe import has_thinking_switch, variables_of
from tests.core.answer_format.test_real_templates import TEMPLATES, TEXT, THOUGHT, rendered

if __name__ == "__main__":
    figures: Counter[str] = Counter()
    print("| template | switch | by default | thoughts read |", "|---|---|---|---|", sep="\n")
    for path in TEMPLATES:
        source, ends, read = path.read_text(encoding="utf-8"), {}, 0
        for mode in ("auto", "on", "off"):
            named = variables_of(source, mode)
            prompt = rendered(source, [{"role": "user", "content": "?"}], tools=[],
                              add_generation_prompt=True, **named)  # fmt: skip
            format, ends[mode] = answer_format(source, prompt), prompt
            tags = next((tags for tags in format.thoughts if format.thought_end in ("", tags.end)), None)
            begin = tags.begin if tags and format.begins == "text" else ""
            answer = f"{begin}{THOUGHT}{tags.end}{TEXT}" if tags else TEXT
            parsed = parse_answer(answer, format)
            read += (parsed.thought, parsed.text) == (THOUGHT if tags else "", TEXT)
        same = [pair for pair in combinations(ends, 2) if ends[pair[0]] == ends[pair[1]]]
        default = {0: "a third", 3: "the only one"}.get(len(same)) or " is ".join(same[0]).removeprefix(
            "auto is "
        )
        off = [name for name in variables_of(source, "off") if name not in variables_of(source)]
        switch = " ".join(off) if has_thinking_switch(source) else "none"
        figures.update([f"switch: {switch}", f"default: {default}", f"{read} of 3 read"])
        print(f"| {path.stem} | {switch} | {default} | {read} of 3 |")
    print(*(f"{name}: {count}" for name, count in sorted(figures.items())), sep="\n")
