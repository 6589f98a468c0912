#!/usr/bin/env bash
# Packages: @modelcontextprotocol/server 2.4.0, @modelcontextprotocol/client 2.4.0 and zod 4.6.7 (npm).
# Expected: a server either refuses a tool at registration or lists it. tools/list gives the tools that can be called
#   (MCP 2026-07-28, server/tools, "Listing Tools").
# Happens: registerTool accepts a schema of zod that JSON Schema cannot express (z.date, z.bigint, z.transform). The
#   error comes with tools/list, as -32603 for all of it: one such tool hides all others, which can still be called.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
  @modelcontextprotocol/server@2.4.0 @modelcontextprotocol/client@2.4.0 zod@4.6.7

cat >run.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

const schemas = {
  string: z.object({ day: z.string() }), date: z.object({ day: z.date() }), bigint: z.object({ day: z.bigint() }),
  transform: z.object({ day: z.string().transform((day) => new Date(day)) }),
};
for (const [kind, outputSchema] of Object.entries(schemas)) {
  const server = new McpServer({ name: 'server', version: '1' });
  const content = [{ type: 'text', text: 'hello' }];
  server.registerTool('greet', {}, async () => ({ content }));
  server.registerTool('day', { outputSchema }, async () => ({ content, structuredContent: { day: 'today' } }));
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  const client = new Client({ name: 'client', version: '1' });
  await client.connect(ours);
  const list = await client.listTools().then(
    ({ tools }) => tools.map((tool) => tool.name).join(' and '), ({ code, message }) => `${code} ${message}`);
  const greeting = await client.callTool({ name: 'greet', arguments: {} });
  console.log(`${kind}: tools/list: ${list}; tools/call greet: ${greeting.content[0].text}`);
  await client.close();
}
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
string: tools/list: greet and day; tools/call greet: hello
date: tools/list: -32603 Date cannot be represented in JSON Schema; tools/call greet: hello
bigint: tools/list: -32603 BigInt cannot be represented in JSON Schema; tools/call greet: hello
transform: tools/list: -32603 Transforms cannot be represented in JSON Schema; tools/call greet: hello
SEEN
