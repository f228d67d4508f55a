"""`draftlight follow`: hold a part of a model for another machine, whenever it asks, until it is stopped."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from core.settings.cluster import FOLLOW_PORT
from core.system.paths import data_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument(
        "--listen", required=True, metavar="ADDRESS",
        help=f"an address of this machine that the leader reaches, host or host:port (port {FOLLOW_PORT};"
        " 0 takes one that is free)",
    )  # fmt: skip
    parser.add_argument(
        "--secret-file", type=Path, default=data_dir() / "cluster-secret", metavar="F",
        help="the secret that all machines share; made if it is not there (default: Draftlight's own)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Follow. Ctrl-C ends it, and what it holds. Raises `ClusterError`, `KeyFileError`."""
    from core.cluster.following import Following
    from core.cluster.machine.addresses import host_and_port
    from core.system.key_file import key_of

    host, port = host_and_port(options.listen, FOLLOW_PORT)
    secret, made = key_of(options.secret_file)
    if made:
        said = f"A new secret is in {options.secret_file}. The leader needs it: copy the file there."
        print(said, file=sys.stderr)
    following = Following(host, port, secret.encode(), lambda words: print(words, file=sys.stderr))
    # Said for programs that started this one, whether or not stderr is watched.
    print(f"{host}:{following.port}", flush=True)

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        following.run()
    except KeyboardInterrupt:
        return 0
    return 0
