"""The frozen snapshot of all settings that travels with a request. A field here is a group."""

from __future__ import annotations

from msgspec import Struct, field

from core.settings.chat import Chat
from core.settings.decoding import Decoding
from core.settings.drafting import Auto, Cacheback, Drafting, DraftModel, Frequency, NgramMod, NgramSimple
from core.settings.gate import Gate
from core.settings.prefill import Prefill
from core.settings.sampling import Sampling
from core.settings.tables import Tables


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of one request. Groups named like a drafter (`ngram_simple`) hold its parameters."""

    drafting: Drafting = field(default_factory=Drafting)
    auto: Auto = field(default_factory=Auto)
    ngram_simple: NgramSimple = field(default_factory=NgramSimple)
    ngram_mod: NgramMod = field(default_factory=NgramMod)
    frequency: Frequency = field(default_factory=Frequency)
    cacheback: Cacheback = field(default_factory=Cacheback)
    draft_model: DraftModel = field(default_factory=DraftModel)
    gate: Gate = field(default_factory=Gate)
    decoding: Decoding = field(default_factory=Decoding)
    sampling: Sampling = field(default_factory=Sampling)
    prefill: Prefill = field(default_factory=Prefill)
    tables: Tables = field(default_factory=Tables)
    chat: Chat = field(default_factory=Chat)
