#!/usr/bin/env bash
# Packages: fastmcp 4.2.3 and mcp 2.3.0 (PyPI).
# Expected: what a tool keeps with `set_state` is there at the next call of the same client, or the server says that it
#   cannot be kept. The identifier of a session is one for all calls of a client.
# Happens: that holds for clients of the handshake of 2025-11-25 only. For 2026-07-28, which both packages' clients
#   choose by themselves, each call has a new session: `set_state` succeeds, and `get_state` gives None, in silence. The
#   documentation of the class says so; nothing at run time does. A server changes its behaviour with a client's update.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet fastmcp==4.2.3 mcp==2.3.0

cat >run.py <<'PY'
import asyncio, fastmcp, logging, mcp, socket, threading, time, uvicorn

logging.disable(logging.CRITICAL)
server = fastmcp.FastMCP("cart")

@server.tool
async def put(item: str, context: fastmcp.Context) -> str:
    await context.set_state("item", item)
    return context.session_id

@server.tool
async def get(context: fastmcp.Context) -> list[str | None]:
    return [context.session_id, await context.get_state("item")]

async def main(url):
    for name, client in {
        "fastmcp, legacy": fastmcp.Client(url, mode="legacy"),
        "fastmcp, default": fastmcp.Client(url),
        "mcp, legacy": mcp.Client(url, mode="legacy"),
        "mcp, default": mcp.Client(url),
    }.items():
        async with client:
            first = (await client.call_tool("put", {"item": "tea"})).structured_content["result"]
            second, item = (await client.call_tool("get", {})).structured_content["result"]
        print(f"{name}: {'one session' if first == second else 'two sessions'}, item {item}")

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
service = uvicorn.Server(uvicorn.Config(server.http_app(), log_level="critical"))
threading.Thread(target=service.run, args=([listener],), daemon=True).start()
while not service.started:
    time.sleep(0.1)
asyncio.run(main(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"))
service.should_exit = True
PY
echo 'Output seen:'
venv/bin/python -W ignore run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
fastmcp, legacy: one session, item tea
fastmcp, default: two sessions, item None
mcp, legacy: one session, item tea
mcp, default: two sessions, item None
SEEN
