"""Answers one request of the module without a daemon: ``python3 -I -S -E alone.py recall|allow-recall``, JSON on stdin.

For where the hook client could not: no daemon can be started, it hangs, or it is of another build. Takes the first of
our programs that works, which is the standard library and the plugin's own sources at the worst. Standard library only;
runs on Python 3.8 and up.
"""

import os
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.dont_write_bytecode = True

from lcc_hook.client import GiveUpError, runtime_folder
from lcc_hook.places import programs

SECONDS = 15.0
INPUT_LIMIT = 1024 * 1024


def main(words: "list[str]") -> None:
    """Print the answer. Exits with 1 and one line on stderr where no program of ours gives one."""
    env = dict(os.environb)
    asked = sys.stdin.buffer.read(INPUT_LIMIT)
    problem = ""
    try:
        found = programs(runtime_folder(env), env)
    except GiveUpError as error:
        sys.exit(f"lcc: {error.say}")
    for program in found:
        try:
            ran = subprocess.run(
                [*program, b"answer", *map(os.fsencode, words)],
                input=asked,
                capture_output=True,
                timeout=SECONDS,
                env=env,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
            continue
        if ran.returncode == 0:
            sys.stdout.buffer.write(ran.stdout)
            return
        problem = os.fsdecode(ran.stderr).strip().rpartition("\n")[2]
    sys.exit(f"lcc: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
