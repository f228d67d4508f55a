"""`draftlight cluster`, `follow` and `generate --cluster` as people type them; ssh is a shell here."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from core.settings.cluster import Cluster, Machine
from core.system.children import child_command, child_environment
from core.system.files import key_of
from tests.core.cli.test_serve import chat, started
from tests.core.cluster.machines import followed, follower, free_port, machines, use_all_cores
from tests.core.toy import write_toy_model
from tests.processes import needs_programs_in


def draftlight(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        child_command(*words),
        env=child_environment(DRAFTLIGHT_HOME=str(home), OPENBLAS_NUM_THREADS="1"),
        preexec_fn=use_all_cores,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_toy_model(tmp_path / "toy")
    return tmp_path / "toy"


def test_a_model_is_looked_at_and_answers_over_two_machines(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "machines.json"
    with machines(tmp_path, 1) as cluster:
        file.write_bytes(msgspec.json.encode(cluster))
        checked = draftlight("cluster", "check", "--model", str(folder), str(file), home=tmp_path)
        assert (checked.returncode, checked.stderr) == (0, "")
        assert "runs over 2 machines by ring, split by tensor" in checked.stdout
        words = ["--prompt", "Hello", "--temperature", "0", "--max-tokens", "20", "--quiet"]
        words = ["generate", "--model", str(folder), *words]
        together = draftlight(*words, "--cluster", str(file), home=tmp_path)
        alone = draftlight(*words, home=tmp_path)
    assert together.returncode == 0, together.stderr
    assert together.stdout == alone.stdout


@pytest.mark.sweep
def test_a_server_over_two_machines_names_the_one_that_is_lost_and_answers_again(
    tmp_path: Path, folder: Path
) -> None:
    file = tmp_path / "machines.json"
    with followed(tmp_path, 1) as (cluster, (follow,)):
        file.write_bytes(msgspec.json.encode(cluster))
        with started("--model", str(folder), "--cluster", str(file)) as (process, line):
            status, before = chat(line)
            assert status == 200, before
            while len(follow.at_work) > 1:
                time.sleep(0.05)
            os.kill(follow.at_work[0], signal.SIGKILL)
            chat(line)
            status, again = chat(line)
            assert status == 200, again
            assert [json.loads(each)["choices"] for each in (before, again)] == 2 * [
                json.loads(before)["choices"]
            ]
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        assert "machine 1 was lost: its connection ended." in said
        assert "another one is started" in said


def test_what_is_missing_is_said_and_the_status_tells_it(tmp_path: Path, folder: Path) -> None:
    key_of(tmp_path / "secret")
    file = tmp_path / "machines.json"
    key_of(tmp_path / "other")
    with follower(tmp_path / "other") as stranger:
        gone = Machine("gone", f"127.0.0.1:{free_port()}")
        cluster = Cluster((Machine("stranger", stranger.address), gone), str(tmp_path / "secret"))
        file.write_bytes(msgspec.json.encode(cluster))
        checked = draftlight("cluster", "check", "--model", str(folder), str(file), home=tmp_path)
        assert checked.returncode == 1
        assert "stranger (127.0.0.1" in checked.stdout
        assert "wrong secret" in checked.stdout
        assert "gone (127.0.0.1" in checked.stdout
        assert "cannot be reached" in checked.stdout
        assert "4 attention heads, which do not divide by 3 machines (2 would do)" in checked.stdout
        asked = draftlight(
            "generate", "--prompt", "x", "--model", str(folder), "--cluster", str(file), home=tmp_path
        )
        assert asked.returncode == 1
        assert "wrong secret" in asked.stderr


def test_a_list_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "machines.json").write_text('{"machines": [{"name": "a"}]}')
    checked = draftlight("cluster", "status", str(tmp_path / "machines.json"), home=tmp_path)
    assert checked.returncode == 2
    assert "address" in checked.stderr


def test_what_does_not_run_is_started_by_ssh(tmp_path: Path) -> None:
    needs_programs_in(tmp_path)
    home = tmp_path / "home"
    secret = home / "data" / "cluster-secret"
    key_of(secret)
    ssh = tmp_path / "ssh"
    # Everything before the last word is about the host; what is run says its number.
    pid_file = shlex.quote(str(tmp_path / "pid"))
    ssh.write_text(f'#!/bin/sh\nfor word; do :; done\nsh -c "$word echo \\$! > {pid_file}"\n')
    ssh.chmod(0o700)
    command = tmp_path / "draftlight"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m core.cli "$@"\n')
    command.chmod(0o700)
    file = tmp_path / "machines.json"
    cluster = Cluster((Machine("second", f"127.0.0.1:{free_port()}"),))
    file.write_bytes(msgspec.json.encode(cluster))
    before = draftlight("cluster", "status", str(file), home=home)
    assert before.returncode == 1
    words = ("cluster", "start", "--ssh", str(ssh), "--command", str(command), str(file))
    try:
        started = draftlight(*words, home=home)
        assert started.returncode == 0, started
        assert "A model may run over 2 machines" in started.stdout
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
