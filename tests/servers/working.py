"""An MCP server over stdio that tells progress, waits until it is cancelled, and keeps a diary.

    python working.py legacy|modern DIARY

Each message that it is sent becomes a line of the diary. A call of `work` tells progress twice and ends once it is
cancelled, or at once with `{"end": true}`; then the result names the process.
"""

import json
import os
import sys


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def discovered(era: str, method: str) -> dict | None:
    capabilities = {"tools": {}}
    if method == "server/discover" and era == "modern":
        versions = ["2026-07-28"]
        return {"resultType": "complete", "supportedVersions": versions, "capabilities": capabilities}
    if method == "initialize" and era == "legacy":
        info = {"name": "working", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    return None


def called(number: int, params: dict) -> None:
    token = params.get("_meta", {}).get("progressToken")
    for progress, message in ((1, "begun"), (2, "card 4111 1111 1111 1111")):
        if token is not None:
            told = {"progressToken": token, "progress": progress, "total": 3, "message": message}
            send(method="notifications/progress", params=told)
    if params.get("arguments", {}).get("end"):
        text = {"type": "text", "text": f"process {os.getpid()}"}
        send(id=number, result={"resultType": "complete", "content": [text]})


def main(era: str, diary: str) -> None:
    for line in sys.stdin:
        with open(diary, "a") as file:
            file.write(line)
        message = json.loads(line)
        number, method = message.get("id"), message.get("method", "")
        if number is None:
            continue
        if method == "tools/call":
            called(number, message["params"])
        elif method == "tools/list":
            tools = [{"name": "work", "inputSchema": {"type": "object"}}]
            send(id=number, result={"resultType": "complete", "tools": tools})
        elif (result := discovered(era, method)) is not None:
            send(id=number, result=result)
        else:
            send(id=number, error={"code": -32601, "message": "Method not found"})


main(*sys.argv[1:])
