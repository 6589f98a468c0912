#!/usr/bin/env bash
# Packages: @opentelemetry/core 2.12.1 and @opentelemetry/api 1.9.1 (npm), opentelemetry-api 1.45.2 (PyPI). MCP carries
#   `traceparent` in `_meta` (2026-07-28, basic, "OpenTelemetry trace context").
# Expected: flags of a trace are two hexadecimal digits, and who passes a trace on sets the bits that it does not know
#   to zero (W3C Trace Context, "trace-flags"). So a later version may use new bits, and traces still pass.
# Happens: npm's package keeps unknown bits and writes a 0 in front of the number, so flags from 10 on get three digits.
#   No reader accepts that, also not its own, and the trace ends there. Python's keeps the bits, in two digits.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @opentelemetry/core@2.12.1 \
  @opentelemetry/api@1.9.1
python3 -m venv venv
venv/bin/pip install --quiet opentelemetry-api==1.45.2

cat >cases.txt <<'TXT'
00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-11
01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-81
TXT
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { defaultTextMapGetter, defaultTextMapSetter, ROOT_CONTEXT } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';

const propagator = new W3CTraceContextPropagator();
const pass = (traceparent) => {
  const carrier = {};
  const context = propagator.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
  propagator.inject(context, carrier, defaultTextMapSetter);
  return carrier.traceparent;
};
for (const traceparent of readFileSync('cases.txt', 'utf8').trim().split('\n')) {
  const first = pass(traceparent);
  console.log(`npm ${traceparent}\n    -> ${first}\n    -> ${pass(first) ?? 'no trace'}`);
}
JS
cat >run.py <<'PY'
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

propagator = TraceContextTextMapPropagator()
for traceparent in open("cases.txt").read().split():
    carrier = {}
    propagator.inject(carrier, propagator.extract({"traceparent": traceparent}))
    print(f"Python {traceparent}\n    -> {carrier['traceparent']}")
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
npm 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
npm 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-11
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011
    -> no trace
npm 01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-81
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-081
    -> no trace
Python 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
Python 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03
Python 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-11
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-11
Python 01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-81
    -> 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-81
SEEN
