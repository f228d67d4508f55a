"""Followers: other machines for pictures, each a `draftlight follow` on this one's loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from app.bench.served import free_port
from core.settings.cluster import Cluster, Machine
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.key_file import key_of


class Followers:
    """`cluster` is the list with all of them, by name."""

    def __init__(self, cluster: Cluster, processes: dict[str, asyncio.subprocess.Process]) -> None:
        self.cluster = cluster
        self._processes = processes

    async def end(self, name: str) -> None:
        """That machine is gone, with what follows on it."""
        process = self._processes[name]
        if process.returncode is None:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def followers(folder: Path, names: Sequence[str]) -> AsyncIterator[Followers]:
    """One for each name; all are ended with the block. Their secret is made in `folder`."""
    secret = folder / "secret"
    key_of(secret)
    processes: dict[str, asyncio.subprocess.Process] = {}
    machines = []
    here = f"127.0.0.1:{await free_port()}"
    found = Followers(Cluster(), processes)
    try:
        for name in names:
            words = ("follow", "--listen", "127.0.0.1:0", "--secret-file", str(secret))
            process = processes[name] = await asyncio.create_subprocess_exec(
                *child_command(*words),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=child_environment(OPENBLAS_NUM_THREADS="1"),
                cwd=CHILD_FOLDER,
            )
            assert process.stdout is not None
            address = (await process.stdout.readline()).decode().strip()
            machines.append(Machine(name, address, tensors=f"127.0.0.1:{await free_port()}"))
        found.cluster = Cluster(tuple(machines), str(secret), here)
        yield found
    finally:
        for name in processes:
            await found.end(name)
