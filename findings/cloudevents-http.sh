#!/usr/bin/env bash
# Packages: cloudevents 2.2.0 (PyPI) and cloudevents 10.0.0 (npm), both of the CloudEvents project.
# Expected: an event that one sends over HTTP, the other reads unchanged, in binary and in structured mode. In binary
#   mode the body is the data in the format of its content type (HTTP binding 1.0.2, section 3.1.2), and header values
#   escape space, `"`, `%` and what is not ASCII with percent signs (section 3.1.3.2). A Boolean is `true` or `false`
#   (core, type system). Any JSON value may be `data` (JSON format, section 3.1).
# Happens: Python writes JSON arrays and Booleans as Python text in binary mode (its type hints name dict, str and bytes
#   only, but structured mode is right). npm neither reads nor writes the escapes (cloudevents/spec issue 1397 tells it
#   of the Go and Java packages), takes JSON of `+json` types for text in binary mode only, and loses 0, false and "" in
#   structured mode. Bytes become a Uint32Array, which `fetch` sends with four bytes for each.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund cloudevents@10.0.0
python3 -m venv venv
venv/bin/pip install --quiet cloudevents==2.2.0

cat >send.py <<'PY'
import base64, json
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

messages = []
for attributes, data in [
    ({}, ["a", None]), ({}, True), ({}, 0), ({"subject": "50% of Zoë"}, {}), ({"urgent": True}, {}),
    ({"datacontenttype": "application/vnd.example+json"}, {"a": 1}),
    ({"datacontenttype": "application/octet-stream"}, b"\0\1\2"),
]:
    required = {"type": "example", "source": "/example", "datacontenttype": "application/json"}
    event = CloudEvent({**required, **attributes}, data)
    for mode, convert in ("binary", to_binary_event), ("structured", to_structured_event):
        sent = convert(event)
        messages.append([f"{attributes} {data}, {mode}", sent.headers, base64.b64encode(sent.body).decode()])
json.dump(messages, open("messages.json", "w"))
PY
cat >read.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { CloudEvent, HTTP } from 'cloudevents';
const show = ({ data, subject, urgent }) => [data, subject, urgent].filter((part) => part !== undefined);
console.log('Python to npm:');
for (const [name, headers, encoded] of JSON.parse(readFileSync('messages.json'))) {
  const bytes = Buffer.from(encoded, 'base64');
  const body = headers['content-type'] === 'application/octet-stream' ? bytes : bytes.toString();
  try {
    console.log(`  ${name}:`, ...show(HTTP.toEvent({ headers, body })));
  } catch (error) {
    console.log(`  ${name}:`, error.name, 'for', body);
  }
}
console.log('npm to npm:');
for (const data of [0, false, '', { a: 1 }]) {
  const event = new CloudEvent({ type: 'example', source: '/example', subject: 'Zoë', data });
  for (const mode of ['binary', 'structured'])
    console.log(`  ${JSON.stringify(data)}, ${mode}:`, ...show(HTTP.toEvent(HTTP[mode](event))));
}
const subject = HTTP.binary(new CloudEvent({ type: 'example', source: '/example', subject: '50% of Zoë' }));
console.log('npm header:', subject.headers['ce-subject']);
const event = new CloudEvent({ type: 'example', source: '/example', data: new Uint8Array([0, 1, 2]) });
const bytes = HTTP.toEvent(HTTP.structured(event));
const sent = await new Response(HTTP.binary(bytes).body).arrayBuffer();
console.log('npm, 3 bytes read and sent again:', sent.byteLength);
JS
echo 'Output seen:'
{ venv/bin/python send.py && node read.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Python to npm:
  {} ['a', None], binary: SyntaxError for ['a', None]
  {} ['a', None], structured: [ 'a', null ]
  {} True, binary: True
  {} True, structured: true
  {} 0, binary: 0
  {} 0, structured:
  {'subject': '50% of Zoë'} {}, binary: {} 50%25%20of%20Zo%C3%AB
  {'subject': '50% of Zoë'} {}, structured: {} 50% of Zoë
  {'urgent': True} {}, binary: {} True
  {'urgent': True} {}, structured: {} true
  {'datacontenttype': 'application/vnd.example+json'} {'a': 1}, binary: {"a": 1}
  {'datacontenttype': 'application/vnd.example+json'} {'a': 1}, structured: { a: 1 }
  {'datacontenttype': 'application/octet-stream'} b'\x00\x01\x02', binary: <Buffer 00 01 02>
  {'datacontenttype': 'application/octet-stream'} b'\x00\x01\x02', structured: Uint32Array(3) [ 0, 1, 2 ]
npm to npm:
  0, binary: 0 Zoë
  0, structured: Zoë
  false, binary: false Zoë
  false, structured: Zoë
  "", binary:  Zoë
  "", structured: Zoë
  {"a":1}, binary: { a: 1 } Zoë
  {"a":1}, structured: { a: 1 } Zoë
npm header: 50% of Zoë
npm, 3 bytes read and sent again: 12
SEEN
