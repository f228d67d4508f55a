"""`make setup`: create the virtual environment and install the locked dependencies.

    python3 packaging/environment.py FOLDER          # create, update or repair it
    python3 packaging/environment.py --check FOLDER  # exit status 0 if it is complete and current

Runs on any Python 3.6 or newer, so that an unsupported one gets a message instead of a syntax error. A
complete environment has a stamp, which is removed before anything is changed and written last: an environment
without a stamp was interrupted and is created again. Concurrent runs wait for each other.
"""

import fcntl
import glob
import hashlib
import os
import platform
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
# The oldest that all locked wheels support (tests/packaging/test_environment.py compares).
OLDEST_GLIBC = (2, 35)
OLDEST_MACOS = (15, 0)
SUPPORTED = (
    "Draftlight runs on Macs with Apple silicon (macOS {}.{} or later) and on x86-64 Linux (glibc {}.{}"
    " or later, for example Debian 12 or Ubuntu 22.04)."
).format(*(OLDEST_MACOS + OLDEST_GLIBC))
_STAMP = ".installed"
_PIP_PACKAGE = re.compile("(?:Collecting|Ignoring|Requirement already satisfied:|Obtaining) ([^ :;]+)")


def unsupported(system, machine, release):
    """Why the locked wheels do not run here; empty if they do.

    `release` is the version of macOS, or of glibc on Linux; empty if there is no glibc.
    """
    version = tuple(int(part) for part in release.split(".")[:2] if part.isdigit())
    if system == "Darwin" and machine == "arm64":
        # Old builds of Python read every macOS since 11 as 10.16.
        if version >= OLDEST_MACOS or version == (10, 16):
            return ""
        return f"This Mac has macOS {release}. {SUPPORTED}"
    if system == "Darwin":
        return f"This Python is built for {machine} processors. {SUPPORTED}"
    if system == "Linux" and machine in ("x86_64", "AMD64"):
        if not version:
            return "This Linux has no glibc. " + SUPPORTED
        return "" if version >= OLDEST_GLIBC else f"This Linux has glibc {release}. {SUPPORTED}"
    return "This is {} on {}. {}".format(
        system or "an unknown system", machine or "an unknown processor", SUPPORTED
    )


def wrong_python(version):
    """Why Python `version` cannot run Draftlight; empty if it can."""
    if OLDEST_PYTHON <= version[:2] <= NEWEST_PYTHON:
        return ""
    return (
        "Draftlight needs Python 3.11, 3.12 or 3.13, and “{}” is Python {}.{}.\n"
        "Install one of them and name it: make PYTHON=python3.11"
    ).format(sys.executable, *version[:2])


def stamp_of(folder):
    """Content of a complete environment's stamp: its own path, and a digest of what it was made from."""
    content = hashlib.sha256()
    for name in ("requirements.lock", "pyproject.toml"):
        with open(os.path.join(ROOT, name), "rb") as file:
            content.update(file.read())
    return f"{os.path.abspath(folder)!a}\n{content.hexdigest()}\n"


def read_stamp(folder):
    """The stamp of the environment in `folder`; empty if it is not complete."""
    try:
        with open(os.path.join(folder, _STAMP)) as file:
            return file.read() or "made by an earlier version\n"
    except (OSError, ValueError):
        return ""


def install(folder):
    """Create or update the environment. Raises CalledProcessError or OSError."""
    stamp = read_stamp(folder)
    # Scripts name the folder that they were installed in, so an environment that was moved does not work.
    moved = stamp.startswith("'") and stamp.splitlines()[0] != stamp_of(folder).splitlines()[0]
    if stamp:
        os.unlink(os.path.join(folder, _STAMP))
    if not stamp or moved or not _works(folder, "import pip"):
        print(f"1 of 3: creating the environment in {os.path.relpath(folder)}", flush=True)
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", folder])
    pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--no-deps", "--no-color"]
    pip.append("--disable-pip-version-check")
    lock = os.path.join(ROOT, "requirements.lock")
    with open(lock) as file:
        packages = sum("==" in line for line in file)
    print(f"2 of 3: installing {packages} packages, some minutes the first time", flush=True)
    run_pip([*pip, "--require-hashes", "-r", lock], packages)
    print("3 of 3: installing Draftlight itself", flush=True)
    run_pip([*pip, "--no-build-isolation", "-e", ROOT], 1)
    make_path_relative(folder)
    with open(os.path.join(folder, _STAMP), "w") as file:
        file.write(stamp_of(folder))


def run_pip(command, packages, output=None):
    """Run pip for so many packages. Raises CalledProcessError, after what pip said, if it fails.

    A terminal shows the current package, in one line; elsewhere nothing is printed. pip's warnings are about
    its cache, its version and the user, so they are printed only if it fails.
    """
    output = output or sys.stdout
    is_terminal = output.isatty() and "CI" not in os.environ
    environment = dict(os.environ, PIP_ROOT_USER_ACTION="ignore", PYTHONUNBUFFERED="1")
    said, begun = [], 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, universal_newlines=True
    ) as pip:
        for line in pip.stdout:
            said.append(line)
            package = _PIP_PACKAGE.match(line)
            if package:
                begun += 1
                shown = f"{min(begun, packages)} of {packages}: {package.group(1)}"
            elif line.startswith("Installing collected packages"):
                shown = "copying them into the environment"
            elif "Retrying" in line:
                shown = "the package index does not answer; trying again"
            else:
                continue
            if is_terminal:
                output.write("\r\x1b[K        " + shown[:70])
                output.flush()
    if is_terminal:
        output.write("\r\x1b[K")
    if pip.returncode:
        sys.stderr.writelines(said[-30:])
        raise subprocess.CalledProcessError(pip.returncode, command)


def make_path_relative(folder):
    """Replace the path of the editable installation by one that is relative to the environment.

    Python 3.11 decodes .pth files by the locale: under LC_ALL=C it cannot start if the path is not ASCII.
    """
    for name in glob.glob(os.path.join(glob.escape(folder), "lib", "*", "site-packages", "*draftlight*.pth")):
        path = os.path.relpath(ROOT, os.path.dirname(name))
        if path.isascii():
            with open(name, "w") as file:
                file.write(path + "\n")


def _works(folder, code):
    """Whether the environment's interpreter runs `code`."""
    try:
        command = [os.path.join(folder, "bin", "python"), "-c", code]
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def _missing_module():
    try:
        import ensurepip
        import venv

        return "" if ensurepip and venv else "venv"
    except ImportError as error:
        return error.name or "venv"


def main(arguments):
    """Exit status."""
    folder = os.path.abspath(arguments[-1])
    if arguments[0] == "--check":  # by the environment's own interpreter, which therefore works
        return 0 if read_stamp(folder) == stamp_of(folder) else 1
    release = platform.mac_ver()[0] if platform.system() == "Darwin" else _glibc()
    problem = unsupported(platform.system(), platform.machine(), release) or wrong_python(sys.version_info)
    if not problem and _missing_module():
        sys.path.insert(0, ROOT)
        from app.launch.libraries import APT_COMMAND

        problem = (
            "Python's venv module is missing. On Debian or Ubuntu, install everything Draftlight needs with:"
        )
        problem += "\n    " + APT_COMMAND
    if problem:
        print(problem, file=sys.stderr)
        return 1
    try:
        lock = os.open(ROOT, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another “make” that sets up the environment", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if read_stamp(folder) != stamp_of(folder) or not _works(folder, ""):
            install(folder)
    except subprocess.CalledProcessError as error:
        print(
            f"The set-up is not complete: {_command(error.cmd)} failed. Run it again.",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        print(f"Cannot set up {error.filename or folder}: {error.strerror}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. The next “make” sets it up again.", file=sys.stderr)
        return 130
    return 0


def _glibc():
    """The version of glibc; empty with another C library."""
    try:
        name, _, release = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return ""
    return release if name == "glibc" else ""


def _command(command):
    return " ".join(command[1:4]) if isinstance(command, list) else str(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
