"""`make starter-verdict`: try the starter model out and write the verdict that ships with Draftlight.

To be run again whenever MLX, mlx-lm or the starter changes. Verdicts for other processors or versions
stay in the file.
"""

from __future__ import annotations

import os
import tempfile

import msgspec

from core.models.runtime import prepare
from core.system.paths import resources_dir


def main() -> int:
    """Returns the exit status."""
    prepare()
    from core.engine.engine import Engine
    from core.machine.trials import Verdict, verdict_key

    path = resources_dir() / "decoding" / "verdicts.json"
    held = msgspec.json.decode(path.read_bytes(), type=list[Verdict])
    path.write_bytes(b"[]\n")  # so that the one that ships does not stand for the trial
    try:
        engine = Engine()
        info = engine.load("starter")
        found = engine.try_out()
    except BaseException:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(held)) + b"\n")
        raise
    others = [each for each in held if each.key != verdict_key(info)]
    path.write_bytes(msgspec.json.format(msgspec.json.encode([*others, found])) + b"\n")
    print(f"{path}: {found}")
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="draftlight-verdict-") as home:
        os.environ["DRAFTLIGHT_HOME"] = home
        raise SystemExit(main())
