#!/usr/bin/env bash
# Packages: fastmcp 4.2.3 and fastmcp-tasks 4.1.4 (PyPI).
# Expected: `fastmcp[tasks]`, which the documentation of both packages names for background tasks, installs for each
#   release of fastmcp, and together with the newest fastmcp-tasks.
# Happens: each release of fastmcp asks for fastmcp-tasks of exactly its own version, and the last of these is 4.1.4. So
#   `fastmcp[tasks]==4.2.3` cannot be installed, nor can the newest releases of the two together: one asks for
#   fastmcp-slim 4.2.3, the other for 4.1.4. Without an exact version pip goes back to fastmcp 4.1.4 without a warning.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv

cat >run.py <<'PY'
import json, subprocess, sys

def resolve(*wanted):
    options = ["--dry-run", "--quiet", "--quiet", "--ignore-installed", "--report", "report.json"]
    answer = subprocess.run([sys.executable, "-m", "pip", "install", *options, *wanted], capture_output=True, text=True)
    if answer.returncode:
        return "refused"
    packages = [package["metadata"] for package in json.load(open("report.json"))["install"]]
    return sorted(f"{package['name']} {package['version']}" for package in packages if "fastmcp" in package["name"])

def demands(wanted):
    options = ["--dry-run", "--quiet", "--quiet", "--ignore-installed", "--no-deps", "--report", "report.json"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, wanted], check=True)
    metadata = json.load(open("report.json"))["install"][0]["metadata"]
    return [name for name in metadata["requires_dist"] if "fastmcp-slim[client" in name or "fastmcp-slim[server" in name or "fastmcp-tasks" in name]

for wanted in ["fastmcp==4.2.3", "fastmcp-tasks==4.1.4"]:
    print(f"{wanted} demands {demands(wanted)}")
for wanted in [["fastmcp==4.2.3"], ["fastmcp[tasks]==4.2.3"], ["fastmcp==4.2.3", "fastmcp-tasks"], ["fastmcp[tasks]<=4.2.3"]]:
    print(f"{' '.join(wanted)}: {resolve(*wanted)}")
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
SEEN
