"""A small MCP server over stdio for the tests: words in two parts, and a picture."""

import json
import sys

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGM4IWeDFTEMLQkAd2xIgco4MNEAAAAASUVORK5CYII="
WORDS = [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]
ANSWERS = {
    "words": WORDS,
    "picture": [{"type": "text", "text": "here it is"}, {"type": "image", "data": PICTURE, "mimeType": "image/png"}],
}


def answer(request: dict) -> dict:
    """The result of one request."""
    method, given = request["method"], request.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": given["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ANSWERS]}
    if method == "tools/call":
        return {"content": ANSWERS[given["name"]]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)
