#!/usr/bin/env bash
# Packages: rfc5424-logging-handler 1.4.3, syslog-rfc5424-parser 0.3.2 and lark-parser 0.6.7 (PyPI), nsyslog-parser
#   0.10.1 (npm).
# Expected: what one library logs, another reads. In structured data `"`, `\` and `]` are escaped with a backslash that
#   is not part of the value (RFC 5424, section 6.3.3). A name may be repeated, as `ip` in the RFC's own example
#   (section 7.2.5). A byte order mark says that the message is UTF-8 (section 6.4).
# Happens: syslog-rfc5424-parser raises ParseError if a value ends with a backslash and another parameter follows, and
#   leaves the escapes in other values and the byte order mark in the text. Of two addresses it keeps the last.
#   nsyslog-parser takes part of a value with an escaped `]` as the name of the element, cuts out ` = `, and reads an
#   element with a registered name (without `@`, section 7) as text of the message.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund nsyslog-parser@0.10.1
python3 -m venv venv
venv/bin/pip install --quiet rfc5424-logging-handler==1.4.3 syslog-rfc5424-parser==0.3.2 lark-parser==0.6.7

cat >run.py <<'PY'
import json, logging, socket
from rfc5424logging import Rfc5424SysLogHandler
from syslog_rfc5424_parser import ParseError, SyslogMessage

receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
logger = logging.getLogger("app")
logger.addHandler(Rfc5424SysLogHandler(address=receiver.getsockname()))
lines = []
for values in [{"a": 'say "no"', "b": "x[1]", "c": "y = z"}, {"a": "C:\\", "b": "x"}]:
    logger.warning("hello", extra={"structured_data": {"rule@32473": values}})
    lines.append(receiver.recv(4096).decode())
    print("logged:", values)
lines.append('<165>1 2026-01-31T12:00:00Z host app 1 id [origin ip="192.0.2.1" ip="192.0.2.129"] hello')
for line in lines:
    try:
        read = SyslogMessage.parse(line).as_dict()
        print("syslog-rfc5424-parser:", read["sd"], ascii(read["msg"]))
    except ParseError as error:
        print("syslog-rfc5424-parser: ParseError:", str(error.__context__).split(" at ")[0])
json.dump(lines, open("lines.json", "w"))
PY
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import parse from 'nsyslog-parser';

for (const line of JSON.parse(readFileSync('lines.json')))
  console.log('nsyslog-parser:', JSON.stringify(parse(line).structuredData), parse(line).message);
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
logged: {'a': 'say "no"', 'b': 'x[1]', 'c': 'y = z'}
logged: {'a': 'C:\\', 'b': 'x'}
syslog-rfc5424-parser: {'rule@32473': {'a': 'say \\"no\\"', 'b': 'x[1\\]', 'c': 'y = z'}} '\ufeffhello'
syslog-rfc5424-parser: ParseError: No terminal defined for 'x'
syslog-rfc5424-parser: {'origin': {'ip': '192.0.2.129'}} 'hello'
nsyslog-parser: [{"$id":"1\\]\"","c":"y z"}] hello
nsyslog-parser: [{"$id":"rule@32473","a":"C:\\\\","b":"x"}] hello
nsyslog-parser: [] ip="192.0.2.1" ip="192.0.2.129"] hello
SEEN
