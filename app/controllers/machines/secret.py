"""Secret: the file that all machines of a cluster share; whoever does not know it gets no further."""

from __future__ import annotations

from pathlib import Path

from core.settings.cluster import Cluster
from core.system.key_file import key_of
from core.system.paths import data_dir


def secret_path(cluster: Cluster) -> Path:
    """Where it is, or would be: as the worker and `draftlight follow` look for it."""
    return Path(cluster.secret_file).expanduser() if cluster.secret_file else data_dir() / "cluster-secret"


def make_secret(cluster: Cluster) -> None:
    """Make it unless it is there. Raises `KeyFileError`."""
    key_of(secret_path(cluster))
