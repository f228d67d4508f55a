"""mlx-lm's own server in a process of its own, with the fast BLAS that Draftlight has, too.

start_child core.bench.serve.plain_server FOLDER PORT
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from core.models.runtime.runtime import prepare


def main(arguments: Sequence[str]) -> int:
    """Serve the model in `arguments[0]` at the port `arguments[1]`, until the process is ended."""
    folder, port = arguments
    prepare()
    sys.argv = ["mlx_lm.server", "--model", folder, "--port", port, "--log-level", "ERROR"]
    from mlx_lm.server import main as serve

    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
