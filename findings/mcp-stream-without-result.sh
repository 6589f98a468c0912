#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 (npm), mcp 2.3.0 (PyPI).
# Expected: a client whose request's event stream ends without a result reports that at once. Under MCP 2025-11-25
#   (basic/transports, "Sending Messages to the Server") disconnection may occur at any time, and without an event ID
#   there is nothing to resume: no result can come any more.
# Happens: the npm client waits its whole time-out (60 seconds by default, 3 here) and reports a time-out, for which a
#   caller would raise the limit. The Python client fails at once and says what happened.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"; kill "${server:-}" 2>/dev/null || true' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0

cat >server.mjs <<'JS'
import { createServer } from 'node:http';
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'work', inputSchema: { type: 'object' } }] },
};
createServer(async (request, answer) => {
  if (request.method !== 'POST') return answer.writeHead(405).end();
  const { id, method } = await new Response(request).json();
  if (id === undefined) return answer.writeHead(202).end();
  if (method === 'tools/call') return answer.writeHead(200, { 'content-type': 'text/event-stream' }).end(': work\n\n');
  const outcome = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'unknown' } };
  answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
}).listen(0, '127.0.0.1', function () { console.log(`http://127.0.0.1:${this.address().port}/mcp`); });
JS
cat >run.mjs <<'JS'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
const client = new Client({ name: 'client', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const start = Date.now();
const error = await client.callTool({ name: 'work', arguments: {} }, { timeout: 3000 }).catch((error) => error);
console.log('npm client:', error.message, Date.now() - start < 2900 ? '(at once)' : '(after the whole time-out)');
await client.close();
JS
cat >run.py <<'PY'
import asyncio, mcp, sys, time
async def main():
    async with mcp.Client(sys.argv[1]) as client:
        start = time.monotonic()
        try:
            await client.call_tool("work", {}, read_timeout_seconds=3)
        except mcp.MCPError as error:
            at_once = time.monotonic() - start < 2.9
            print("Python client:", error, "(at once)" if at_once else "(after the whole time-out)")
asyncio.run(main())
PY
node server.mjs >url &
server=$!
until [ -s url ]; do kill -0 "$server" && sleep 0.1; done
echo 'Output seen:'
{ node run.mjs "$(cat url)" && venv/bin/python run.py "$(cat url)"; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm client: Request timed out (after the whole time-out)
Python client: SSE stream ended without a response (at once)
SEEN
