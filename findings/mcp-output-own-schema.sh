#!/usr/bin/env bash
# Packages: mcp 2.3.0 and pydantic 2.14.4 (PyPI).
# Expected: a tool's structured result conforms to the output schema that the same server publishes (MCP 2026-07-28,
#   server/tools, "Output Schema": "Servers MUST provide structured results that conform to this schema").
# Happens: the server publishes what pydantic would read and sends what pydantic writes. These differ for a
#   serialization alias, a computed field and an infinite float. The tool has run and the server reports success; then
#   the client of the same package raises RuntimeError instead of returning the result.
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
from pydantic import BaseModel, Field, computed_field

logging.disable(logging.CRITICAL)

class Plain(BaseModel):
    first_name: str

class WrittenAs(BaseModel):
    first_name: str = Field(serialization_alias="firstName")

class Total(BaseModel, extra="forbid"):
    net: int

    @computed_field
    def gross(self) -> int:
        return self.net * 2

class Limit(BaseModel):
    limit: float

server = MCPServer("people")
ran = []

def offer(value):
    def tool():
        ran.append(type(value).__name__)
        return value
    tool.__annotations__["return"] = type(value)
    server.add_tool(tool, name=type(value).__name__)

for value in [Plain(first_name="Ada"), WrittenAs(first_name="Ada"), Total(net=1), Limit(limit=float("inf"))]:
    offer(value)

async def main():
    async with mcp.Client(server) as client:
        for tool in (await client.list_tools()).tools:
            try:
                print(tool.name, (await client.call_tool(tool.name, {})).structured_content)
            except RuntimeError as error:
                print(tool.name, "ran:", tool.name in ran, "-", str(error).splitlines()[0].split(": ", 1)[1])

asyncio.run(main())
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Plain {'first_name': 'Ada'}
WrittenAs ran: True - 'first_name' is a required property
Total ran: True - Additional properties are not allowed ('gross' was unexpected)
Limit ran: True - None is not of type 'number'
SEEN
