"""The frozen snapshot of all settings that travels with a request. A field here is a group."""

from __future__ import annotations

from msgspec import field

from core.settings.chat import Chat
from core.settings.decoding import Decoding
from core.settings.drafting import DrafterGroups
from core.settings.gate import Gate
from core.settings.prefill import Prefill
from core.settings.sampling import Sampling
from core.settings.tables import Tables


class Settings(DrafterGroups, frozen=True, forbid_unknown_fields=True):
    """All settings of one request; first those of the drafters."""

    gate: Gate = field(default_factory=Gate)
    decoding: Decoding = field(default_factory=Decoding)
    sampling: Sampling = field(default_factory=Sampling)
    prefill: Prefill = field(default_factory=Prefill)
    tables: Tables = field(default_factory=Tables)
    chat: Chat = field(default_factory=Chat)
