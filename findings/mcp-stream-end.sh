#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 (npm), mcp 2.3.0 (PyPI).
# Expected: a client whose stream of events has ended without the answer knows that no answer comes, since the events
#   had no identifiers by which it could be continued (MCP 2026-07-28, streamable HTTP). It fails the call.
# Happens: npm's client waits until its time-out, 2 seconds here and 60 by default, and then names the time-out as the
#   reason. Python's fails at once, and says that the stream has ended. So an agent stands still for a minute, and looks
#   for a slow tool, when a proxy or a restart has cut the stream. (The wait ends; nothing hangs.)
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
createServer(async (request, answer) => {
  if (request.method !== 'POST') return answer.writeHead(405).end();
  const { id, method } = JSON.parse(Buffer.concat(await request.toArray()));
  if (method !== 'tools/call') {
    const serverInfo = { name: 'server', version: '1' };
    const result = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo, resultType: 'complete',
      ttlMs: 0, cacheScope: 'private' };
    answer.writeHead(200, { 'content-type': 'application/json' });
    return answer.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }
  const params = { level: 'info', data: 'working' };
  answer.writeHead(200, { 'content-type': 'text/event-stream' });
  answer.end(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n\n`);
}).listen(0, '127.0.0.1', function () { console.log(`http://127.0.0.1:${this.address().port}/mcp`); });
JS
cat >run.mjs <<'JS'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'client', version: '1' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const start = performance.now();
await client.callTool({ name: 'tool', arguments: {} }, { timeout: 2000 }).catch(({ message }) =>
  console.log('npm client:', message, performance.now() - start < 1900 ? 'at once' : 'after the whole time-out'));
await client.close();
JS
cat >run.py <<'PY'
import asyncio, logging, mcp, sys, time

logging.disable(logging.CRITICAL)

async def main():
    async with mcp.Client(sys.argv[1]) as client:
        start = time.monotonic()
        try:
            await client.call_tool("tool", {}, read_timeout_seconds=2)
        except mcp.MCPError as error:
            print("Python client:", error, "at once" if time.monotonic() - start < 1.9 else "after the whole time-out")

asyncio.run(main())
PY
node server.mjs >url &
server=$!
until [ -s url ]; do kill -0 "$server" && sleep 0.1; done
echo 'Output seen:'
{ node run.mjs "$(cat url)" && venv/bin/python run.py "$(cat url)"; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm client: Request timed out after the whole time-out
Python client: SSE stream ended without a response at once
SEEN
