#!/usr/bin/env bash
# Packages: @modelcontextprotocol/server-everything 2026.8.31 with @modelcontextprotocol/sdk 1.32.2 (npm).
# Expected: for a resource that does not exist, a server of MCP 2025-11-25 should answer with the code -32002
#   (server/resources, "Error Handling"), by which a client tells a missing resource from a wrong request. The message
#   is one sentence.
# Happens: the reference server, by the official SDK, answers -32602 (invalid parameters) for an unknown URI and -32603
#   (internal error) for one that fits a template. The SDK writes `MCP error -32602: ` into the message that it sends,
#   though the code is a member of its own, and its client writes the same once more.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
    @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/sdk@1.32.2

cat >run.mjs <<'JS'
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const args = ['node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio'];
const transport = new StdioClientTransport({ command: 'node', args, stderr: 'ignore' });
const client = new Client({ name: 'client', version: '1' });
transport.setProtocolVersion = (version) => console.log(`protocol ${version}`);
await client.connect(transport);
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
  if (message.error) console.log(`sent: ${message.error.code} ${message.error.message}`);
  receive(message, extra);
};
for (const uri of ['demo://nope', 'demo://resource/dynamic/text/0'])
  await client.readResource({ uri }).catch(({ code, message }) => console.log(`raised: ${code} ${message}`));
await client.close();
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
protocol 2025-11-25
sent: -32602 MCP error -32602: Resource demo://nope not found
raised: -32602 MCP error -32602: MCP error -32602: Resource demo://nope not found
sent: -32603 Unknown resource: demo://resource/dynamic/text/0
raised: -32603 MCP error -32603: Unknown resource: demo://resource/dynamic/text/0
SEEN
