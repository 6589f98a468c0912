#!/usr/bin/env bash
# Packages: fastmcp 4.2.3 and mcp 2.3.0 (PyPI), @modelcontextprotocol/sdk 1.32.2 and zod 4.6.7 (npm).
# Expected: a proxy shows the tools of the server behind it to every client that it serves, whichever MCP version each
#   side speaks: it is a client on one side and a server on the other (MCP 2026-07-28, basic/versioning).
# Happens: a fastmcp client that talks to a 2025-11-25 server itself falls back to that version and lists its tool. The
#   proxy instead speaks its own client's version to that server, which refuses it. The proxy logs a warning and gives
#   an empty list, so a 2026-07-28 client sees a server without tools. No error reaches the client.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"; kill "${server:-}" 2>/dev/null || true' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2 zod@4.6.7
python3 -m venv venv
venv/bin/pip install --quiet fastmcp==4.2.3 mcp==2.3.0

cat >server.mjs <<'JS'
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
createServer(async (request, answer) => {
  const server = new McpServer({ name: 'old', version: '1' });
  server.registerTool('greet', {}, async () => ({ content: [{ type: 'text', text: 'hello' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  await server.connect(transport);
  await transport.handleRequest(request, answer);
}).listen(0, '127.0.0.1', function () { console.log(`http://127.0.0.1:${this.address().port}/mcp`); });
JS
cat >run.py <<'PY'
import asyncio, logging, sys
from fastmcp import Client
from fastmcp.server import create_proxy

logging.disable(logging.CRITICAL)

async def main():
    for name, target in [("direct", sys.argv[1]), ("proxy ", create_proxy(sys.argv[1]))]:
        for mode in ["legacy", "auto"]:
            async with Client(target, mode=mode) as client:
                tools = [tool.name for tool in await client.list_tools()]
            print(f"{name}, client mode {mode}: {tools}")

asyncio.run(main())
PY
node server.mjs >url &
server=$!
until [ -s url ]; do kill -0 "$server" && sleep 0.1; done
echo 'Output seen:'
venv/bin/python run.py "$(cat url)" | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
direct, client mode legacy: ['greet']
direct, client mode auto: ['greet']
proxy , client mode legacy: ['greet']
proxy , client mode auto: []
SEEN
