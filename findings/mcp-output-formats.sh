#!/usr/bin/env bash
# Packages: mcp 2.3.0 and pydantic 2.14.4 (PyPI), @modelcontextprotocol/client 2.4.0 (npm).
# Expected: a result that a Python server sends fits the output schema that it publishes (MCP 2026-07-28, server/tools,
#   "Output Schema"), so clients of both languages take it. The npm client checks formats.
# Happens: pydantic names formats that its own texts do not keep. A time without offset is no RFC 3339 `date-time` or
#   `time` (JSON Schema 2020-12, validation, section 7.3.1), nor is a duration with a fraction or a sign a `duration`,
#   or an IPv6 address with a zone an `ipv6`. The npm client fails such a call after the tool has run; the Python client
#   does not check formats. So a tool works until the first duration with a part of a second.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0 pydantic==2.14.4

cat >server.py <<'PY'
from datetime import datetime, time, timedelta, timezone
from ipaddress import IPv6Address
from mcp.server.mcpserver import MCPServer
from pydantic import create_model

server = MCPServer("Python", log_level="ERROR")

def offer(name, value):
    model = create_model("Result", value=type(value))
    def tool():
        return model(value=value)
    tool.__annotations__["return"] = model
    server.add_tool(tool, name=name)

offer("datetime with offset", datetime(2026, 1, 31, 12, tzinfo=timezone.utc))
offer("datetime without offset", datetime(2026, 1, 31, 12))
offer("time without offset", time(12))
offer("2 seconds", timedelta(seconds=2))
offer("1.5 seconds", timedelta(seconds=1.5))
offer("minus 2 seconds", -timedelta(seconds=2))
offer("IPv6 address with zone", IPv6Address("fe80::1%eth0"))
server.run()
PY
cat >client.py <<'PY'
import asyncio, mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    server = StdioServerParameters(command="venv/bin/python", args=["-W", "ignore", "server.py"])
    async with mcp.Client(stdio_client(server)) as client:
        for tool in (await client.list_tools()).tools:
            print(f"Python client, {tool.name}:", (await client.call_tool(tool.name, {})).structured_content["value"])

asyncio.run(main())
PY
cat >client.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const client = new Client({ name: 'client', version: '1' });
await client.connect(new StdioClientTransport({ command: 'venv/bin/python', args: ['-W', 'ignore', 'server.py'] }));
for (const { name } of (await client.listTools()).tools)
  await client.callTool({ name, arguments: {} }).then(
    ({ structuredContent }) => console.log(`npm client, ${name}:`, structuredContent.value),
    ({ message }) => console.log(`npm client, ${name}:`, message.split(': ')[1]));
await client.close();
JS
echo 'Output seen:'
{ venv/bin/python client.py && node client.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Python client, datetime with offset: 2026-01-31T12:00:00Z
Python client, datetime without offset: 2026-01-31T12:00:00
Python client, time without offset: 12:00:00
Python client, 2 seconds: PT2S
Python client, 1.5 seconds: PT1.5S
Python client, minus 2 seconds: -PT2S
Python client, IPv6 address with zone: fe80::1%eth0
npm client, datetime with offset: 2026-01-31T12:00:00Z
npm client, datetime without offset: data/value must match format "date-time"
npm client, time without offset: data/value must match format "time"
npm client, 2 seconds: PT2S
npm client, 1.5 seconds: data/value must match format "duration"
npm client, minus 2 seconds: data/value must match format "duration"
npm client, IPv6 address with zone: data/value must match format "ipv6"
SEEN
