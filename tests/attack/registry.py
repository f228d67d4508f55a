"""All campaigns by name. A campaign's module is imported only when it is run: some need Qt, some MLX."""

from __future__ import annotations

import importlib

from tests.attack.campaign import Campaign

# Each is a module of `tests.attack.campaigns`, dashes as underscores, and holds `CAMPAIGN`.
NAMES: tuple[str, ...] = (
    "architectures",
    "caches",
    "cluster",
    "command-line",
    "databases",
    "documents",
    "images",
    "imports",
    "model-folders",
    "model-zoo",
    "numerics",
    "preferences",
    "protocol-lines",
    "reading-ahead",
    "recovery",
    "rendered-texts",
    "server-clients",
    "server-requests",
    "tables",
    "tools",
    "window-kills",
    "worker-growth",
    "worker-kills",
)


def campaign(name: str) -> Campaign:
    """Raises ValueError for a name that is none."""
    if name not in NAMES:
        raise ValueError(f"There is no campaign {name!r}. There are: {', '.join(NAMES)}.")
    found: Campaign = importlib.import_module(f"tests.attack.campaigns.{name.replace('-', '_')}").CAMPAIGN
    return found
