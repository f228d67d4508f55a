"""Which settings stand where, and what closed sections say."""

from __future__ import annotations

from app.panels.groups import Group, groups, summary
from core.settings import Setting, Settings, assign, declared


def _by_name() -> dict[str, Group]:
    return {group.name: group for group in groups()}


def test_every_declared_setting_stands_in_exactly_one_place() -> None:
    placed = [setting.key for group in groups() for setting in group.settings]
    placed += [s.key for group in groups() for members in group.drafters.values() for s in members]
    assert sorted(placed) == sorted(setting.key for setting in declared())


def test_drafters_parameters_stand_with_the_choice_of_drafter() -> None:
    drafting = _by_name()["drafting"]
    assert {setting.group for setting in drafting.drafters["ngram-simple"]} == {"ngram_simple"}
    assert all(not group.drafters for name, group in _by_name().items() if name != "drafting")
    assert "ngram_simple" not in _by_name()


def test_summaries_are_the_telling_values() -> None:
    settings = assign(Settings(), "sampling.temperature", 0.7)
    settings = assign(settings, "sampling.top_p", 0.95)
    settings = assign(settings, "prefill.keep_pct", 30.0)
    settings = assign(settings, "drafting.drafter", "off")
    named = _by_name()
    assert summary(named["basics"], settings) == "temp 0.7 · Automatic"
    assert summary(named["sampling"], settings) == "top-p 0.95 · seed 42"
    assert "keep 30%" in summary(named["prefill"], settings)
    assert summary(named["drafting"], settings).startswith("Off")


def test_a_group_without_a_phrase_of_its_own_names_its_first_settings() -> None:
    penalty = next(s for s in declared() if s.key == "sampling.repetition_penalty")
    seed = next(s for s in declared() if s.key == "sampling.seed")
    group = Group("unnamed", "Unnamed", (penalty, seed), {})
    assert summary(group, Settings()) == "repetition penalty 1"


def test_groups_are_titled_even_if_nobody_named_them() -> None:
    setting = Setting("cache_reuse.on", "switch", "Reuse", "Keeps what was read.", True)
    [group] = groups([setting])
    assert (group.name, group.title, group.drafters) == ("cache_reuse", "Cache reuse", {})


def test_the_basics_are_five_controls_and_come_first() -> None:
    """With the model above them: system prompt, temperature, length, reading."""
    first = groups()[0]
    keys = ["chat.system_prompt", "sampling.temperature", "sampling.max_tokens", "prefill.mode"]
    assert (first.name, [setting.key for setting in first.settings]) == ("basics", keys)
    assert [setting.title for setting in first.settings] == [
        "System prompt",
        "Temperature",
        "Length",
        "Reading",
    ]
    reading = first.settings[-1]
    assert [reading.labels[choice] for choice in reading.choices] == ["Automatic", "Whole", "Quick"]
