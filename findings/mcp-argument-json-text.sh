#!/usr/bin/env bash
# Packages: mcp 2.3.0 and pydantic 2.14.4 (PyPI).
# Expected: a tool gets a string argument as it was sent. The published input schema of `str | None` is
#   {"anyOf": [{"type": "string"}, {"type": "null"}]}, and the JSON strings sent below match its first branch.
# Happens: the server parses the string as JSON before it validates, unless the type is exactly `str`. The text `null`
#   becomes None, and text that is a JSON array or object is refused, though the schema admits it.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0 pydantic==2.14.4

cat >run.py <<'PY'
import asyncio, logging, mcp
from mcp.server.mcpserver import MCPServer

logging.disable(logging.CRITICAL)
server = MCPServer("notes")

@server.tool()
def required(text: str) -> str:
    return repr(text)

@server.tool()
def optional(text: str | None = None) -> str:
    return repr(text)

async def main():
    async with mcp.Client(server) as client:
        for text in ["hello", "null", " null ", "true", "[1, 2]", '{"a": 1}']:
            for tool in ["required", "optional"]:
                result = await client.call_tool(tool, {"text": text})
                print(f"{tool} {text!r}:", "refused" if result.is_error else result.content[0].text)

asyncio.run(main())
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
required 'hello': 'hello'
optional 'hello': 'hello'
required 'null': 'null'
optional 'null': None
required ' null ': ' null '
optional ' null ': None
required 'true': 'true'
optional 'true': 'true'
required '[1, 2]': '[1, 2]'
optional '[1, 2]': refused
required '{"a": 1}': '{"a": 1}'
optional '{"a": 1}': refused
SEEN
