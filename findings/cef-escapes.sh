#!/usr/bin/env bash
# Packages: cefevent 0.5.6 and pycef 1.11 (PyPI), nsyslog-parser 0.10.1 (npm).
# Expected: events that one library writes, another reads. ArcSight's CEF escapes `|` and `\` of the header and `=` and
#   `\` of the extension with a backslash; a reader takes the escape away.
# Happens: pycef loses the name and the severity if the name contains `|`, and raises IndexError for a backslash in the
#   product. nsyslog-parser cuts a value at `=`, in silence. Both leave the escapes in the values they do return.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund nsyslog-parser@0.10.1
python3 -m venv venv
venv/bin/pip install --quiet cefevent==0.5.6 pycef==1.11

cat >run.py <<'PY'
import pycef
from cefevent import CEFEvent

for fields in [
    {"name": "login", "deviceProduct": "Gate"},
    {"name": "login | logout", "deviceProduct": "Gate"},
    {"name": "login", "deviceProduct": "Gate\\Web"},
    {"name": "login", "deviceProduct": "Gate", "message": "a=b c"},
]:
    event = CEFEvent()
    for name, value in {"deviceVendor": "Acme", "severity": 5, **fields}.items():
        event.set_field(name, value)
    line = event.build_cef()
    print(line, file=open("events", "a"))
    print(line)
    try:
        read = pycef.parse(line)
        print("  pycef:", {key: read.get(key) for key in ("DeviceProduct", "Name", "Severity", "msg")})
    except IndexError as error:
        print("  pycef: IndexError:", error)
PY
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import parse from 'nsyslog-parser';

for (const line of readFileSync('events', 'utf8').trim().split('\n')) {
  const { cef, fields } = parse(line);
  console.log('nsyslog-parser:', JSON.stringify([cef.deviceProduct, cef.name, cef.severity, fields.msg ?? null]));
}
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
CEF:0|Acme|Gate|1.0|0|login|5|
  pycef: {'DeviceProduct': 'Gate', 'Name': 'login', 'Severity': '5', 'msg': None}
CEF:0|Acme|Gate|1.0|0|login \| logout|5|
  pycef: {'DeviceProduct': 'Gate', 'Name': '', 'Severity': None, 'msg': None}
CEF:0|Acme|Gate\\Web|1.0|0|login|5|
  pycef: IndexError: list index out of range
CEF:0|Acme|Gate|1.0|0|login|5|msg=a\=b c
  pycef: {'DeviceProduct': 'Gate', 'Name': 'login', 'Severity': '5', 'msg': 'a\\=b c'}
nsyslog-parser: ["Gate","login","5",null]
nsyslog-parser: ["Gate","login \\| logout","5",null]
nsyslog-parser: ["Gate\\\\Web","login","5",null]
nsyslog-parser: ["Gate","login","5","a\\ c"]
SEEN
