#!/usr/bin/env bash
# Packages: @modelcontextprotocol/server 2.4.0, @modelcontextprotocol/client 2.4.0 and zod 4.6.7 (npm), mcp 2.3.0 and
#   pydantic 2.14.4 (PyPI).
# Expected: a `pattern` in a tool's output schema means the same to every client. JSON Schema 2020-12 (core, section
#   6.4) recommends regular expressions of ECMA-262 with Unicode support.
# Happens: zod publishes the JavaScript expression and pydantic the Rust one, as they are. The Python client compiles
#   them with `re` and refuses `\p{L}` and `(?<name>...)`, the npm client compiles them as JavaScript and refuses
#   `(?P<name>...)`. Both list the tools, and fail at each call of such a tool instead of returning its valid result.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
  @modelcontextprotocol/server@2.4.0 @modelcontextprotocol/client@2.4.0 zod@4.6.7
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0 pydantic==2.14.4

cat >server.mjs <<'JS'
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
const server = new McpServer({ name: 'npm', version: '1' });
for (const [name, pattern] of Object.entries({ plain: /^[a-z]+$/, letters: /^\p{L}+$/u, named: /^(?<word>[a-z]+)$/ }))
  server.registerTool(name, { outputSchema: z.object({ text: z.string().regex(pattern) }) },
    async () => ({ content: [], structuredContent: { text: 'abc' } }));
await server.connect(new StdioServerTransport());
JS
cat >client.py <<'PY'
import asyncio, mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
async def main():
    async with mcp.Client(stdio_client(StdioServerParameters(command="node", args=["server.mjs"]))) as client:
        for tool in (await client.list_tools()).tools:
            try:
                print("Python client:", (await client.call_tool(tool.name, {})).structured_content)
            except RuntimeError as error:
                print("Python client:", str(error).splitlines()[0])
asyncio.run(main())
PY
cat >server.py <<'PY'
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field
class Text(BaseModel):
    text: str = Field(pattern="^(?P<word>[a-z]+)$")
server = MCPServer("Python", log_level="ERROR")
@server.tool()
def named() -> Text:
    return Text(text="abc")
server.run()
PY
cat >client.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
const client = new Client({ name: 'client', version: '1' });
await client.connect(new StdioClientTransport({ command: 'venv/bin/python', args: ['server.py'] }));
for (const { name } of (await client.listTools()).tools)
  await client.callTool({ name, arguments: {} }).then(
    ({ structuredContent }) => console.log('npm client:', structuredContent),
    ({ message }) => console.log('npm client:', message.split(': ')[0]));
await client.close();
JS
echo 'Output seen:'
{ venv/bin/python client.py && node client.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Python client: {'text': 'abc'}
Python client: Invalid schema for tool letters: '^\\p{L}+$' is not a 'regex'
Python client: Invalid schema for tool named: '^(?<word>[a-z]+)$' is not a 'regex'
npm client: Tool 'named' has an invalid outputSchema
SEEN
