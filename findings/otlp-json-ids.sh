#!/usr/bin/env bash
# Packages: opentelemetry-proto 1.45.2 and protobuf 7.36.2 (PyPI). The first has the messages of OTLP, the second reads
#   and writes messages as JSON.
# Expected: a message that was read from OTLP/JSON has the identifiers that its sender wrote.
# Happens: OTLP/JSON writes identifiers in hexadecimal and enums as numbers (OTLP 1.x, "JSON Protobuf Encoding"), unlike
#   every other message of protobuf. Hexadecimal text is also base64, so reading it raises no error and gives a trace
#   identifier of 24 bytes, and not of 16. Writing gives base64 and names of enums, which OTLP does not have.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet opentelemetry-proto==1.45.2 protobuf==7.36.2

cat >run.py <<'PY'
import json
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span

sent = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "call", "kind": 2}
print("OTLP/JSON:", json.dumps(sent))
read = json_format.ParseDict(sent, Span())
print("read, trace:", len(read.trace_id), "bytes", read.trace_id.hex())
print("read, span:", len(read.span_id), "bytes", read.span_id.hex())
right = Span(trace_id=bytes.fromhex(sent["traceId"]), span_id=bytes.fromhex(sent["spanId"]), name="call", kind=2)
print("written:", json.dumps(json_format.MessageToDict(right)))
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
OTLP/JSON: {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "call", "kind": 2}
read, trace: 24 bytes e5bf1e7df7fbf7cd37f35d37776ebd6fadf7f35ddf73ad1c
read, span: 12 bytes 79e7b5f5bede7377356f5ef8
written: {"traceId": "W47/95gDgQPSabYzgT/GDA==", "spanId": "7uGbfsPBsXQ=", "name": "call", "kind": "SPAN_KIND_SERVER"}
SEEN
