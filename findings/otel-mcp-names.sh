#!/usr/bin/env bash
# Packages: opentelemetry-semantic-conventions 0.66b2, opentelemetry-sdk 1.45.2 and mcp 2.3.0 (PyPI),
#   @opentelemetry/semantic-conventions 1.45.0 (npm).
# Expected: a name that is marked as deprecated has a better name. The attributes of MCP and of generative AI are in
#   use: the Python MCP package writes them into its spans.
# Happens: both packages mark all names of `mcp` and `gen_ai` as deprecated, but not because of another name: they moved
#   to a repository of their own. `jsonrpc`, which goes with them, is not marked. A linter that refuses deprecated names
#   refuses all spans of MCP. Python warns only where a member of the enum is looked up by its value.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @opentelemetry/semantic-conventions@1.45.0
python3 -m venv venv
venv/bin/pip install --quiet opentelemetry-semantic-conventions==0.66b2 mcp==2.3.0 opentelemetry-sdk==1.45.2

cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import * as names from '@opentelemetry/semantic-conventions/incubating';

const path = 'node_modules/@opentelemetry/semantic-conventions/dist/experimental_attributes.d.mts';
const parts = readFileSync(path, 'utf8').split('/**').map((part) => part.split('*/'));
for (const area of ['MCP', 'GEN_AI', 'JSONRPC']) {
  const all = Object.keys(names).filter((name) => name.startsWith(`ATTR_${area}_`));
  const deprecated = all.filter((name) => parts.some(([comment, code = '']) =>
    comment.includes('@deprecated') && code.includes(`const ${name}:`)));
  console.log(`npm ${area}: ${deprecated.length} of ${all.length} deprecated`);
}
const [comment] = parts.find(([, code = '']) => code.includes('const ATTR_MCP_METHOD_NAME:'));
console.log('npm:', comment.split('@deprecated ')[1].split('](')[0].replace('[', ''));
JS
cat >run.py <<'PY'
import ast, asyncio, importlib, inspect, mcp, warnings
from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import mcp_attributes

for area in ["mcp", "gen_ai", "jsonrpc"]:
    module = importlib.import_module(f"opentelemetry.semconv._incubating.attributes.{area}_attributes")
    body = ast.parse(inspect.getsource(module)).body
    docs = [text.value.value for name, text in zip(body, body[1:]) if isinstance(name, ast.AnnAssign)]
    print(f"Python {area}: {sum(doc.strip().startswith('Deprecated') for doc in docs)} of {len(docs)} deprecated")
for what in ["MCP_METHOD_NAME", "McpMethodNameValues.PING", "McpMethodNameValues('ping')"]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(what, vars(mcp_attributes))
    print(f"Python {what}:", [warning.category.__name__ for warning in caught])

exporter = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
server = MCPServer("server", log_level="ERROR")
server.add_tool(lambda: "hello", name="greet")

async def main():
    async with mcp.Client(server) as client:
        await client.call_tool("greet", {})

asyncio.run(main())
written = {name for span in exporter.get_finished_spans() for name in span.attributes}
print("mcp writes:", *sorted(name for name in written if name.startswith(("mcp", "gen_ai"))))
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm MCP: 4 of 4 deprecated
npm GEN_AI: 60 of 60 deprecated
npm JSONRPC: 0 of 2 deprecated
npm: Moved to the OpenTelemetry GenAI semantic conventions repository
Python mcp: 4 of 4 deprecated
Python gen_ai: 60 of 60 deprecated
Python jsonrpc: 0 of 2 deprecated
Python MCP_METHOD_NAME: []
Python McpMethodNameValues.PING: []
Python McpMethodNameValues('ping'): ['DeprecationWarning']
mcp writes: gen_ai.operation.name gen_ai.tool.name mcp.method.name mcp.protocol.version
SEEN
