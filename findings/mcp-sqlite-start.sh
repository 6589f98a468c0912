#!/usr/bin/env bash
# Packages: mcp-server-sqlite 2025.4.25, mcp 2.3.0 and 1.30.0 (PyPI).
# Expected: a server whose metadata ask for `mcp[cli]>=1.6.0` starts with each version that pip may choose for that,
#   or pip refuses the version. The newest release of mcp-server-sqlite says nothing of an upper bound.
# Happens: a plain installation gets mcp 2, whose `Server` takes handlers as arguments and has no decorators. The
#   server dies before it answers: its client sees a closed connection, and only standard error names the cause. The
#   same release starts with `mcp<2`.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv 2.3.0
2.3.0/bin/pip install --quiet mcp-server-sqlite==2025.4.25 mcp==2.3.0
python3 -m venv 1.30.0
1.30.0/bin/pip install --quiet mcp-server-sqlite==2025.4.25 mcp==1.30.0

cat >run.py <<'PY'
import asyncio, importlib.metadata, logging, mcp, sys

logging.disable(logging.CRITICAL)

async def main(version):
    server = mcp.StdioServerParameters(command=f"{version}/bin/mcp-server-sqlite", args=["--db-path", f"{version}.db"])
    with open("errors", "w+") as errors:
        try:
            async with mcp.stdio_client(server, errors) as streams, mcp.ClientSession(*streams) as session:
                await session.initialize()
                tools = (await session.list_tools()).tools
            print(f"mcp {version}: {len(tools)} tools")
        except* mcp.MCPError as group:
            print(f"mcp {version}: the client sees: {group.exceptions[0].message}")
            errors.seek(0)
            print(f"mcp {version}: standard error ends: {errors.read().splitlines()[-1]}")

print("demands", [name for name in importlib.metadata.requires("mcp-server-sqlite") if name.startswith("mcp")])
for version in ["2.3.0", "1.30.0"]:
    asyncio.run(main(version))
PY
echo 'Output seen:'
2.3.0/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
SEEN
