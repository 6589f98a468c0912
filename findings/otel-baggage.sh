#!/usr/bin/env bash
# Packages: opentelemetry-api 1.45.2 (PyPI), @opentelemetry/core 2.12.1 and @opentelemetry/api 1.9.1 (npm). MCP carries
#   baggage in `_meta` (2026-07-28, basic, "OpenTelemetry trace context"), so both meet in one trace.
# Expected: values survive the way from one library to the other. W3C Baggage ("value", "property")
#   percent-encodes values: a space is `%20` and `+` is itself. Properties follow after `;`. A value may be empty.
# Happens: Python writes a space as `+`, which JavaScript reads as a plus, and reads `+` as a space. Python takes
#   properties as part of the value and passes them on encoded, so they are no properties any more. JavaScript drops an
#   entry with an empty value.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund \
  @opentelemetry/core@2.12.1 @opentelemetry/api@1.9.1
python3 -m venv venv
venv/bin/pip install --quiet opentelemetry-api==1.45.2

cat >baggage.mjs <<'JS'
import { defaultTextMapGetter, propagation, ROOT_CONTEXT } from '@opentelemetry/api';
import { W3CBaggagePropagator } from '@opentelemetry/core';

for (const baggage of process.argv.slice(2)) {
  const context = new W3CBaggagePropagator().extract(ROOT_CONTEXT, { baggage }, defaultTextMapGetter);
  const entries = propagation.getBaggage(context)?.getAllEntries() ?? [];
  console.log(`JavaScript reads ${baggage} as`, JSON.stringify(entries.map(([key, { value }]) => [key, value])));
}
JS
cat >baggage.py <<'PY'
import json, sys
from opentelemetry.baggage import get_all, set_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator

propagator = W3CBaggagePropagator()
for header in sys.argv[2:]:
    context = propagator.extract({"baggage": header})
    carrier = {}
    propagator.inject(carrier, context)
    print(f"Python reads {header} as {json.dumps(dict(get_all(context)))} and passes on {carrier['baggage']}")
carrier = {}
propagator.inject(carrier, set_baggage("team", sys.argv[1]))
print(f"Python writes {sys.argv[1]!r} as", carrier["baggage"])
PY
echo 'Output seen:'
{
  venv/bin/python baggage.py 'red blue' 'team=red%20blue' 'team=c+d' 'team=red;level=1' 'team='
  node baggage.mjs 'team=red+blue' 'team=red%20blue' 'team=red;level=1' 'team=,user=ada'
} | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
Python reads team=red%20blue as {"team": "red blue"} and passes on team=red+blue
Python reads team=c+d as {"team": "c d"} and passes on team=c+d
Python reads team=red;level=1 as {"team": "red;level=1"} and passes on team=red%3Blevel%3D1
Python reads team= as {"team": ""} and passes on team=
Python writes 'red blue' as team=red+blue
JavaScript reads team=red+blue as [["team","red+blue"]]
JavaScript reads team=red%20blue as [["team","red blue"]]
JavaScript reads team=red;level=1 as [["team","red"]]
JavaScript reads team=,user=ada as [["user","ada"]]
SEEN
