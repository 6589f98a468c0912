#!/usr/bin/env bash
# Packages: @modelcontextprotocol/server 2.4.0, @modelcontextprotocol/client 2.4.0 and zod 4.6.7 (npm).
# Expected: a result that passes the server's check of `outputSchema` also passes the client's, as both check the same
#   schema (MCP 2026-07-28, server/tools, "Output Schema"). To zod, a member with `.default()` may be left out and a
#   plain `z.object` allows further members.
# Happens: the server checks with zod, which fills in defaults, trims and drops members, but sends the result as the
#   tool gave it. The published schema describes the value after these changes, so the client of the same release
#   refuses what the server passed, after the tool has run.
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

const tools = {
  optional: [z.object({ unit: z.string().optional() }), {}],
  default: [z.object({ unit: z.string().default('C') }), {}],
  prefault: [z.object({ unit: z.string().prefault('C') }), {}],
  trim: [z.object({ unit: z.string().trim().max(1) }), { unit: ' C ' }],
  catch: [z.object({ unit: z.enum(['C', 'F']).catch('C') }), { unit: 'K' }],
  extra: [z.object({ unit: z.string() }), { unit: 'C', degrees: 20 }],
};
const server = new McpServer({ name: 'server', version: '1' });
for (const [name, [outputSchema, structuredContent]] of Object.entries(tools))
  server.registerTool(name, { outputSchema }, async () => ({ content: [], structuredContent }));
const [ours, theirs] = InMemoryTransport.createLinkedPair();
await server.connect(theirs);
const client = new Client({ name: 'client', version: '1' });
await client.connect(ours);
for (const { name, outputSchema } of (await client.listTools()).tools) {
  const result = await client.callTool({ name, arguments: {} }).then(
    (result) => (result.isError ? result.content[0].text : JSON.stringify(result.structuredContent)),
    (error) => error.message.replace(/^.*schema: /, 'refused by the client: '));
  console.log(`${name}: required ${JSON.stringify(outputSchema.required ?? [])}: ${result}`);
}
await client.close();
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
optional: required []: {}
default: required ["unit"]: refused by the client: data must have required property 'unit'
prefault: required ["unit"]: refused by the client: data must have required property 'unit'
trim: required ["unit"]: refused by the client: data/unit must NOT have more than 1 characters
catch: required ["unit"]: refused by the client: data/unit must be equal to one of the allowed values
extra: required ["unit"]: refused by the client: data must NOT have additional properties
SEEN
