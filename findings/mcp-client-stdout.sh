#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client and @modelcontextprotocol/server 2.4.0 (npm).
# Expected: a library leaves standard output to its program, all the more one for MCP, where standard output of a stdio
#   server carries messages alone (MCP 2026-07-28, basic/transports, "stdio").
# Happens: the client answers a list that the server does not offer with an empty one and writes a notice by
#   console.debug, which is standard output in Node. A program that prints JSON, or a stdio server that asks another
#   server, sends a line that its reader cannot parse. The warnings of the package use console.warn, which is
#   standard error.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
    @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/server@2.4.0

cat >run.mjs <<'JS'
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';

const server = new McpServer({ name: 'tools-only', version: '1' });
server.registerTool('greet', {}, async () => ({ content: [{ type: 'text', text: 'hello' }] }));
const [ours, theirs] = InMemoryTransport.createLinkedPair();
await server.connect(theirs);
const client = new Client({ name: 'client', version: '1' });
await client.connect(ours);
const { tools } = await client.listTools();
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
console.log(JSON.stringify([tools.length, prompts.length, resources.length, resourceTemplates.length]));
await client.close();
JS
node run.mjs >standard-output 2>standard-error
cat >check.mjs <<'JS'
import { readFileSync } from 'node:fs';
const json = (line) => { try { return JSON.parse(line), 'JSON'; } catch { return 'not JSON'; } };
for (const name of ['standard-output', 'standard-error'])
  for (const line of readFileSync(name, 'utf8').split('\n').filter(Boolean))
    console.log(`${name}, ${json(line)}: ${line}`);
JS
echo 'Output seen:'
node check.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
standard-output, not JSON: Client.listPrompts() called but server does not advertise prompts capability - returning empty list
standard-output, not JSON: Client.listResources() called but server does not advertise resources capability - returning empty list
standard-output, not JSON: Client.listResourceTemplates() called but server does not advertise resources capability - returning empty list
standard-output, JSON: [1,0,0,0]
SEEN
