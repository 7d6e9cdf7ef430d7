"""The start of the plugin's MCP server: it becomes ``lcc mcp`` where there is an environment, else says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "hook" / "lcc_hook" / "serve_mcp.py"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def serve(home: Path, said: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "-E", PROGRAM],
        input=said,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_it_becomes_the_server(tmp_path: Path) -> None:
    """With an interpreter that has the package, the first answer is the MCP server's."""
    done = serve(tmp_path, json.dumps(HELLO) + "\n", LCC_PYTHON=sys.executable)
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "lcc", done.stderr


def test_without_an_environment_one_line_says_what_to_do(tmp_path: Path) -> None:
    """Nothing is installed: exit code 1, nothing on stdout, one line with the way out."""
    done = serve(tmp_path, "")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("lcc: its Python environment is not there yet")
    assert done.stderr.count("\n") == 1


def test_an_interpreter_that_is_gone_is_named(tmp_path: Path) -> None:
    """A named interpreter that is not there is named in the line."""
    done = serve(tmp_path, "", LCC_PYTHON="/nowhere/python3")
    assert done.returncode == 1
    assert "/nowhere/python3" in done.stderr
    assert "Traceback" not in done.stderr
