"""`draftlight generate` and `serve` as ranks: equal answers, and the end of all ranks if one fails."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from core.cluster.group import ENDED_STATUS
from core.folders.places import folder_name
from core.system.children import child_command, child_environment
from tests.core.cli.test_serve import chat
from tests.core.cluster.launch import launch, use_all_cores
from tests.core.toy import write_toy_model

_ANSWER = ("--prompt", "Hello", "--temperature", "0", "--quiet")
# Time for the ranks to end after a fault; the deadline of an operation is one second.
_END_S = 60.0


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "toy"
    write_toy_model(folder, max_position_embeddings=8192)
    return folder


@pytest.mark.sweep
def test_mlx_launch_answers_as_one_process(tmp_path: Path, toy: Path) -> None:
    more = ("--max-tokens", "12", "--drafter", "cacheback")
    words = [*child_command("generate"), "--model", str(toy), *_ANSWER, *more]
    environment = child_environment(DRAFTLIGHT_HOME=str(tmp_path), OPENBLAS_NUM_THREADS="1")
    launcher = Path(sys.executable).with_name("mlx.launch")
    done = [
        subprocess.run(
            [*before, *words],
            env=environment,
            preexec_fn=use_all_cores,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        for before in ([], [str(launcher), "-n", "2", "--"])
    ]
    alone, together = done
    assert alone.returncode == together.returncode == 0, together.stderr
    assert "Joining the other ranks" in together.stderr
    assert together.stdout == alone.stdout
    assert len(alone.stdout) > 10


@contextmanager
def answering(home: Path, toy: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two ranks in the middle of a long answer."""
    words = child_command("generate", "--model", str(toy), *_ANSWER, "--max-tokens", "8000", "--json")
    with launch(home, 2, words, DRAFTLIGHT_DEADLINE_S="1") as ranks:
        assert ranks[0].stdout is not None
        assert any('"token"' in line for line in ranks[0].stdout)
        yield ranks


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("rank", "number"),
    [
        (1, signal.SIGKILL),
        pytest.param(1, signal.SIGSTOP, marks=pytest.mark.sweep),
        pytest.param(0, signal.SIGKILL, marks=pytest.mark.sweep),
    ],
)
def test_a_rank_that_is_lost_or_stopped_ends_the_other_with_a_sentence(
    tmp_path: Path, toy: Path, rank: int, number: signal.Signals
) -> None:
    with answering(tmp_path, toy) as ranks:
        ranks[rank].send_signal(number)
        _, said = ranks[1 - rank].communicate(timeout=_END_S)
        assert ranks[1 - rank].returncode == ENDED_STATUS
        assert "Traceback" not in said
        assert ("Rank 1 (127.0.0.1)" if rank else "Rank 0 was lost") in said
        if number == signal.SIGSTOP:
            ranks[rank].send_signal(signal.SIGCONT)
            assert ranks[rank].wait(_END_S) not in (0, None)


@pytest.mark.sweep
def test_a_server_whose_other_rank_is_lost_ends_with_a_sentence(tmp_path: Path, toy: Path) -> None:
    words = child_command("serve", "--model", str(toy), "--port", "0", "--quiet")
    with launch(tmp_path, 2, words) as ranks:
        assert ranks[0].stdout is not None
        address = ranks[0].stdout.readline().strip()
        with closing(http.client.HTTPConnection(address[7:-3], timeout=_END_S)) as line:
            status, answer = chat(line)
        assert status == 200, answer
        ranks[1].kill()
        _, said = ranks[0].communicate(timeout=_END_S)
        assert ranks[0].returncode == 1
        assert "Rank 1 (127.0.0.1) was lost" in said


def test_a_model_that_another_rank_lacks_is_refused(tmp_path: Path, toy: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(toy, other)
    (other / "config.json").write_text((toy / "config.json").read_text() + "\n")
    words = child_command("generate", "--model", "owner/name", *_ANSWER)
    for rank, folder in ((0, toy), (1, other)):
        target = tmp_path / f"rank-{rank}" / "data" / "models" / folder_name("owner/name")
        shutil.copytree(folder, target)
    with launch(tmp_path, 2, words) as ranks:
        _, said = ranks[0].communicate(timeout=_END_S)
        assert ranks[0].returncode == 1
        assert "Rank 1: " in said
        assert "has other files than on rank 0" in said
        assert ranks[1].wait(_END_S) == 0


@pytest.mark.sweep
def test_heads_that_do_not_divide_are_refused_before_joining(tmp_path: Path, toy: Path) -> None:
    words = child_command("generate", "--model", str(toy), *_ANSWER)
    with launch(tmp_path, 3, words) as ranks:
        _, said = ranks[0].communicate(timeout=_END_S)
        assert ranks[0].returncode == 1
        assert "4 attention heads, which do not divide by 3" in said


def test_ranks_without_mlx_launch_are_named(tmp_path: Path, toy: Path) -> None:
    environment = {**os.environ, "MLX_RANK": "0", "MLX_HOSTFILE": str(tmp_path / "missing.json")}
    done = subprocess.run(
        child_command("generate", "--model", str(toy), *_ANSWER),
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "The environment of mlx.launch is incomplete" in done.stderr
