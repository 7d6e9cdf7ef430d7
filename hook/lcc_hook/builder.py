"""Builds the plugin's own Python environment, as a process of its own that outlives the session's hook.

``python3 -I builder.py <data folder> <plugin root> <runtime folder>``. Standard library only; runs on Python 3.8 and
up. The environment holds the libraries that our sources need; the sources themselves are the plugin's own. Nothing
is used before it is whole: the new environment is built beside the old one, tried, marked with what it was made
for, and then put in its place by one rename of a link. A try that fails takes away what it made.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.dont_write_bytecode = True

from lcc_hook.client import BUILD, GiveUpError
from lcc_hook.files import remove, write_small
from lcc_hook.places import OLDEST, USUAL_PLACES, from_sources, is_ready, lacks_room, needs
from lcc_hook.starter import start_daemon

OLDEST_NAME = ".".join(map(str, OLDEST))
LIST_NEEDS = """
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print(*project["dependencies"], sep="\\n")
"""
LIBRARIES = "import httpx, orjson, rich, tokenizers, typer, watchfiles"
UNUSED = "hf-xet huggingface-hub fsspec PyYAML filelock tqdm httpx2 httpcore2 truststore setuptools pip".split()
"""What comes along and is never imported: what tokenizers downloads models with, and the installer itself, last."""
STEP_SECONDS = 900
NO_NETWORK = ("name resolution", "NewConnectionError", "ConnectionError", "ConnectTimeout", "(from versions: none)")


class SetupError(Exception):
    """Why the environment could not be built, with the way out."""


class Builder:
    """Builds the environment for the package at ``root`` in ``data``, and writes what it does to setup.log."""

    def __init__(self, data: str, root: str) -> None:
        self.data = data
        self.root = root
        self.target = os.path.join(data, f"venv-{BUILD}-{int(time.time())}")
        self.log = open(os.path.join(data, "setup.log"), "w", encoding="utf-8", errors="replace")  # noqa: SIM115

    def note(self, line: str) -> None:
        self.write(time.strftime("%Y-%m-%d %H:%M:%S ") + line + "\n")

    def write(self, text: str) -> None:
        """Into the log; on a full disk the log says less, and the try goes on to its own end."""
        with contextlib.suppress(OSError):
            self.log.write(text)
            self.log.flush()

    def begin(self, step: str) -> None:
        """Leave word of how far this is, for whoever is told meanwhile, and for the next try where this one dies."""
        self.note(step)
        write_small(os.fsencode(self.data) + b"/setup-step", step.encode())

    def step(self, *words: str) -> "tuple[int, str]":
        """Run one program; its output goes to the log. Returns its exit code and what it said."""
        self.note(" ".join(words))
        temporary = os.path.join(self.target, "unpacked")  # it goes with the environment where this is killed
        env = {**os.environ, "TMPDIR": temporary} if os.path.isdir(temporary) else None
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=STEP_SECONDS,
                check=False,
                env=env,
            )
        except subprocess.TimeoutExpired:
            return 124, f"{words[0]} took more than {STEP_SECONDS} s"
        except OSError as error:
            return 127, f"{words[0]}: {error.strerror}"
        said = done.stdout.decode("utf-8", "replace")
        self.write(said)
        return done.returncode, said

    def build(self) -> None:
        self.clear({self.current()})
        drop_copied_environment(self.root)
        lacking = lacks_room(os.fsencode(self.data))
        if lacking:
            raise SetupError(lacking)
        python = os.path.join(self.target, "bin", "python")
        found = self.find_python()
        uv = shutil.which("uv", path=search_path())
        self.begin("step 1 of 3: making it")
        if found:
            self.must("the environment", found, "-m", "venv", self.target)
        elif uv:
            self.must("the environment", uv, "venv", "--python", ">=" + OLDEST_NAME, self.target)
        else:
            raise SetupError(
                f"no Python {OLDEST_NAME} or newer with its venv module is on PATH "
                "(on Debian and Ubuntu: apt install python3-venv; elsewhere: install Python or uv)"
            )
        self.begin("step 2 of 3: fetching its libraries")
        os.mkdir(os.path.join(self.target, "unpacked"))
        described = os.path.join(self.root, "pyproject.toml")
        listed = self.must("the list of libraries", python, "-I", "-c", LIST_NEEDS, described).split()
        if found:
            pip = [python, "-I", "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
            leave = [python, "-I", "-m", "pip", "uninstall", "--yes", "--disable-pip-version-check"]
        else:
            assert uv is not None
            pip = [uv, "pip", "install", "--no-cache", "--python", python]
            leave = [uv, "pip", "uninstall", "--python", python]
        self.must("fetching the libraries", *pip, *listed)
        with contextlib.suppress(SetupError):  # what stays takes room only
            self.must("leaving out what is not used", *leave, *UNUSED)
        shutil.rmtree(os.path.join(self.target, "unpacked"), ignore_errors=True)
        self.begin("step 3 of 3: trying it")
        self.must("the libraries' first start", python, "-I", "-c", LIBRARIES)
        program = [os.fsdecode(word) for word in from_sources([os.fsencode(python), b"-I"], b"lcc-daemon")]
        self.must("the daemon's first start", *program, "--version")
        write_small(os.fsencode(self.target) + b"/lcc-needs", needs())
        self.put_in_place()

    def must(self, what: str, *words: str) -> str:
        """Run one program that must succeed; returns what it said. Raises SetupError."""
        code, said = self.step(*words)
        if code == 0:
            return said
        if "No space left on device" in said:
            raise SetupError(f"the disk of {self.data} is full")
        if any(sign in said for sign in NO_NETWORK):
            raise SetupError("the package index cannot be reached (no network?)")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if line.lower().startswith("error:")] or lines[-1:] or [f"exit {code}"]
        raise SetupError(f"{what} failed: {telling[0][:200]}")

    def find_python(self) -> "str | None":
        """A Python that is new enough and can make environments with pip."""
        names = [sys.executable, *(f"python3.{minor}" for minor in (13, 12, 11, 14)), "python3"]
        check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {OLDEST})"
        for name in names:
            path = shutil.which(name, path=search_path())
            if path and self.step(path, "-I", "-c", check)[0] == 0:
                return path
        return None

    def current(self) -> str:
        try:
            return os.path.basename(os.readlink(os.path.join(self.data, "venv")))
        except OSError:
            return ""

    def put_in_place(self) -> None:
        before = self.current()
        link = os.path.join(self.data, "venv")
        if os.path.isdir(link) and not os.path.islink(link):
            os.rename(link, f"{self.target}-replaced")
        beside = f"{link}.new"
        if os.path.lexists(beside):
            os.unlink(beside)
        os.symlink(os.path.basename(self.target), beside)
        os.replace(beside, link)
        self.clear({before, os.path.basename(self.target)})  # a daemon may still run from the one before

    def clear(self, kept: "set[str]") -> None:
        for name in os.listdir(self.data):
            if name.startswith("venv-") and name not in kept:
                shutil.rmtree(os.path.join(self.data, name), ignore_errors=True)


def drop_copied_environment(root: str) -> None:
    """Take away the environment of a checkout that the client has copied along with the plugin: it runs from nowhere
    but its own place. Only in the client's own copy, ``…/plugins/cache/<marketplace>/<plugin>/<version>``."""
    copied = os.path.join(root, ".venv")
    is_the_clients = os.path.abspath(root).split(os.sep)[-5:-3] == ["plugins", "cache"]
    if is_the_clients and not os.path.islink(copied) and os.path.isfile(os.path.join(copied, "pyvenv.cfg")):
        shutil.rmtree(copied, ignore_errors=True)


def search_path() -> str:
    """PATH, and where newer Pythons usually are besides."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *map(os.fsdecode, USUAL_PLACES)])


def open_lock(data: bytes) -> "int | None":
    """The builder's lock, or None where another one builds."""
    fd = os.open(data + b"/setup.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def main(data: str, root: str, folder: str) -> None:
    """Build the environment in ``data`` from the package at ``root``, unless it is there or another one builds it."""
    os.umask(0o077)
    os.makedirs(data, exist_ok=True)
    lock = open_lock(os.fsencode(data))
    if lock is None:
        return
    try:
        with contextlib.suppress(OSError):  # a full disk: then nobody is told since when this runs
            os.truncate(lock, 0)
            os.pwrite(lock, b"%d" % time.time(), 0)
        if not is_ready(os.fsencode(data)):
            build(Builder(data, root), os.fsencode(folder))
    finally:
        os.close(lock)


def build(builder: Builder, folder: bytes) -> None:
    """One try; why it failed is left for the next session start to say. Afterwards a daemon of it runs."""
    data = os.fsencode(builder.data)
    try:
        builder.build()
    except (SetupError, OSError) as error:
        shutil.rmtree(builder.target, ignore_errors=True)
        builder.note(f"failed: {error}")
        with contextlib.suppress(OSError):
            write_small(data + b"/setup-failed", str(error).encode("utf-8", "replace"))
            remove(data + b"/setup-step")
        return
    builder.note("ready")
    for name in (b"/setup-failed", b"/setup-told", b"/setup-step", b"/setup-tries"):
        remove(data + name)
    try:
        env = {**os.environb, b"CLAUDE_PLUGIN_DATA": data}
        stop_daemon(builder, folder)
        start_daemon(folder, env)
    except GiveUpError as gave:
        builder.note(gave.say)


def stop_daemon(builder: Builder, folder: bytes) -> None:
    """End the daemon that has run without these libraries; it finishes what it is doing first."""
    python = os.path.join(builder.target, "bin", "python")
    program = [os.fsdecode(word) for word in from_sources([os.fsencode(python), b"-I"], b"lcc-daemon")]
    builder.step("/usr/bin/env", "LCC_RUNTIME_DIR=" + os.fsdecode(folder), *program, "stop")


if __name__ == "__main__":
    main(*sys.argv[1:4])
