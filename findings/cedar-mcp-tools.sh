#!/usr/bin/env bash
# Packages: cedar-policy-mcp-schema-generator 0.7.0 and cedarpy 4.12.2 (PyPI), @cedar-policy/mcp-schema-generator-wasm
#   0.6.0 (npm): Cedar's own generators of schemas and requests for MCP tools.
# Expected: they take what an MCP server may list and give what Cedar needs to decide. Tool names may have `-` and `.`
#   (MCP 2026-07-28, server/tools, "Tool Names"), properties have any name, and a property's schema may be `true` (JSON
#   Schema 2020-12, core, section 4.3.2). `5.0` is an integer (validation, section 6.1.1). A Cedar request is principal,
#   action, resource and context.
# Happens: one tool with such a name, property or schema leaves the whole list without a schema, as do Cedar's own words
#   such as `in`. Their READMEs do not tell. The request has no context (the READMEs list the same members), though by
#   the schema that they generate the arguments belong there, so Cedar refuses it until one has built the context by
#   hand.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
  @cedar-policy/mcp-schema-generator-wasm@0.6.0
python3 -m venv venv
venv/bin/pip install --quiet cedar-policy-mcp-schema-generator==0.7.0 cedarpy==4.12.2

cat >stub.cedarschema <<'CEDAR'
namespace Files {
  @mcp_principal("User") entity User;
  @mcp_resource("Server") entity Server;
  action "call_tool" appliesTo { principal: [User], resource: [Server] };
}
CEDAR
cat >tools.json <<'JSON'
[{"name": "read", "inputSchema": {"type": "object", "properties": {"lines": {"type": "integer"}},
  "required": ["lines"]}},
 {"name": "read-all", "inputSchema": {"type": "object"}},
 {"name": "files.read", "inputSchema": {"type": "object"}},
 {"name": "in", "inputSchema": {"type": "object"}},
 {"name": "list", "inputSchema": {"type": "object", "properties": {"page-size": {"type": "integer"}}}},
 {"name": "find", "inputSchema": {"type": "object", "properties": {"$filter": {"type": "string"}}}},
 {"name": "test", "inputSchema": {"type": "object", "properties": {"if": {"type": "string"}}}},
 {"name": "echo", "inputSchema": {"type": "object", "properties": {"value": true}}}]
JSON
cat >run.py <<'PY'
import json, cedarpy
from cedar_mcp_schema_generator import generate_request, generate_schema

stub = open("stub.cedarschema").read()
first, *others = json.load(open("tools.json"))
print("PyPI:")
for tool in others:
    result = generate_schema(stub, [first, tool])
    print(f"  {tool['name']} {[*tool['inputSchema'].get('properties', {})]}:", result["error"] or "fine")
policy = 'permit(principal, action == Files::Action::"read", resource) when { context.input.lines < 10 };'
schema = generate_schema(stub, [first])["schema"]
print("policy fits the schema:", cedarpy.validate_policies(policy, schema).validation_passed)
for lines in 5, 5.0:
    request = generate_request(stub, [first], {"params": {"tool": "read", "args": {"lines": lines}}},
                               principal_type="User", principal_id="ada", resource_type="Server", resource_id="here")
    print(f"request, lines {lines}:", request["error"] or [*request])
    if request["isOk"]:
        parts = {name: request[name] for name in ("principal", "action", "resource")}
        for context in {}, {"input": {"lines": lines}}:
            answer = cedarpy.is_authorized({**parts, "context": context}, policy, request["entitiesJson"], schema)
            print(f"  Cedar, context {context}:", answer.decision.value, *answer.diagnostics.errors, sep="\n    ")
PY
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { generateRequest, generateSchema } from '@cedar-policy/mcp-schema-generator-wasm';
const stub = readFileSync('stub.cedarschema', 'utf8');
const [first, ...others] = JSON.parse(readFileSync('tools.json'));
console.log('npm:');
for (const tool of others) {
  const { error } = JSON.parse(generateSchema(stub, JSON.stringify([first, tool])));
  console.log(`  ${tool.name} ${Object.keys(tool.inputSchema.properties ?? {})}:`, error ?? 'fine');
}
const input = JSON.stringify({ params: { tool: 'read', args: { lines: 5 } } });
const request = generateRequest(stub, JSON.stringify([first]), input, 'User', 'ada', 'Server', 'here');
console.log('request:', Object.keys(JSON.parse(request)).join(', '));
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
PyPI:
  read-all []: Error adding tools: unexpected token `-`
  files.read []: Error adding tools: unexpected token `.`
  in []: Error adding tools: this identifier is reserved and cannot be used: in
  list ['page-size']: Error adding tools: unexpected token `-`
  find ['$filter']: Error adding tools: invalid token
  test ['if']: Error adding tools: this identifier is reserved and cannot be used: if
  echo ['value']: Invalid tool descriptions: failed to parse JSON
policy fits the schema: True
request, lines 5: ['principal', 'action', 'resource', 'entitiesJson', 'error', 'isOk']
  Cedar, context {}:
    NoDecision
    failed to build request: while parsing context, expected the record to have an attribute `input`, but it does not
  Cedar, context {'input': {'lines': 5}}:
    Allow
request, lines 5.0: Request generation error: Invalid Integer Literal: 5.0
npm:
  read-all : Error adding tools: unexpected token `-`
  files.read : Error adding tools: unexpected token `.`
  in : Error adding tools: this identifier is reserved and cannot be used: in
  list page-size: Error adding tools: unexpected token `-`
  find $filter: Error adding tools: invalid token
  test if: Error adding tools: this identifier is reserved and cannot be used: if
  echo value: Invalid tool descriptions: failed to parse JSON
request: principal, action, resource, entitiesJson, error, isOk
SEEN
