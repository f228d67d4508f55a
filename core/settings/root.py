"""The frozen snapshot of all settings that travels with a request. A field here is a group."""

from __future__ import annotations

from msgspec import Struct, field

from core.settings.chat import Chat
from core.settings.drafting import Drafting, NgramSimple
from core.settings.prefill import Prefill
from core.settings.sampling import Sampling


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of one request. Groups named like a drafter (`ngram_simple`) hold its parameters."""

    drafting: Drafting = field(default_factory=Drafting)
    ngram_simple: NgramSimple = field(default_factory=NgramSimple)
    sampling: Sampling = field(default_factory=Sampling)
    prefill: Prefill = field(default_factory=Prefill)
    chat: Chat = field(default_factory=Chat)
