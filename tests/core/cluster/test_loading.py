"""A gathering that fails half-way gives its machines back."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cluster import loading
from core.cluster.loading import ClusterSetup
from core.events import CheckMachines, Failed, MachinesChecked
from core.models.config import Machine
from core.worker.model_service import FoldersInUse, ModelService
from tests.core.cluster.machines import machines


def test_machines_are_released_when_checking_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> MachinesChecked:
        raise MemoryError("nothing left")

    with machines(tmp_path, 1) as cluster:
        with monkeypatch.context() as patched:
            patched.setattr(loading, "MachinesChecked", fail)
            with pytest.raises(MemoryError), ClusterSetup(cluster, "") as setup:
                setup.checked()
            setup = ClusterSetup(cluster, "")
            with pytest.raises(MemoryError):
                setup.load()
            said: list[object] = []
            service = ModelService(said.append, Machine(1 << 30, False), FoldersInUse())
            service._check(CheckMachines("r", cluster, ""))
            service.close()
            assert isinstance(said[-1], Failed)
        with ClusterSetup(cluster, "") as setup:
            found = setup.checked()
        assert [each.busy for each in found.machines] == [False, False]
        assert not found.machines[1].problem
