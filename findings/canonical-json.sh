#!/usr/bin/env bash
# Packages: rfc8785 0.1.4 and jcs 0.2.1 (PyPI), canonicalize 4.0.0 and json-canonicalize 3.0.1 (npm).
# Expected: the canonical form of a canonical form is itself, and all four give the same for the same value, since
#   signatures and hashes are of that form. A number is written as JavaScript writes it (RFC 8785, section 3.2.2.3;
#   295147905179352830000 is an output in its appendix B), and keys are sorted at every level (section 3.2.3).
# Happens: rfc8785 writes the float 1e16 as 10000000000000000, which Python reads as an int, and refuses that: it cannot
#   check what it wrote. Refusing such an int is meant (its issue 46). On npm, json-canonicalize does not sort what
#   `toJSON` returns, nor anything below, so a Buffer has another form than the same value read from JSON, and than in
#   canonicalize (which had this once: its issue 5).
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund canonicalize@4.0.0 json-canonicalize@3.0.1
python3 -m venv venv
venv/bin/pip install --quiet rfc8785==0.1.4 jcs==0.2.1

cat >run.py <<'PY'
import json, jcs, rfc8785
for text in ["9007199254740991", "1e16", "10000000000000000", "295147905179352830000", "1e21"]:
    for name, write in {"rfc8785": rfc8785.dumps, "jcs": jcs.canonicalize}.items():
        steps = []
        try:
            for _ in "first", "again":
                steps.append(write(json.loads(steps[-1] if steps else text)).decode())
        except ValueError as error:
            steps.append(type(error).__name__)
        print(f"{name}, {text}:", *steps)
PY
cat >run.mjs <<'JS'
import canonicalize from 'canonicalize';
import { canonicalize as jsonCanonicalize } from 'json-canonicalize';
class Price {
  toJSON() {
    return { value: 5, currency: { name: 'euro', code: 'EUR' } };
  }
}
for (const [name, value] of Object.entries({ Buffer: Buffer.from('a'), 'a class with toJSON': new Price() }))
  for (const [library, write] of Object.entries({ canonicalize, 'json-canonicalize': jsonCanonicalize })) {
    console.log(`${library}, ${name}:`, write({ value }));
    console.log('  read from JSON:', write(JSON.parse(JSON.stringify({ value }))));
  }
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
rfc8785, 9007199254740991: 9007199254740991 9007199254740991
jcs, 9007199254740991: 9007199254740991 9007199254740991
rfc8785, 1e16: 10000000000000000 IntegerDomainError
jcs, 1e16: 10000000000000000 10000000000000000
rfc8785, 10000000000000000: IntegerDomainError
jcs, 10000000000000000: 10000000000000000 10000000000000000
rfc8785, 295147905179352830000: IntegerDomainError
jcs, 295147905179352830000: 295147905179352830000 295147905179352830000
rfc8785, 1e21: 1e+21 1e+21
jcs, 1e21: 1e+21 1e+21
canonicalize, Buffer: {"value":{"data":[97],"type":"Buffer"}}
  read from JSON: {"value":{"data":[97],"type":"Buffer"}}
json-canonicalize, Buffer: {"value":{"type":"Buffer","data":[97]}}
  read from JSON: {"value":{"data":[97],"type":"Buffer"}}
canonicalize, a class with toJSON: {"value":{"currency":{"code":"EUR","name":"euro"},"value":5}}
  read from JSON: {"value":{"currency":{"code":"EUR","name":"euro"},"value":5}}
json-canonicalize, a class with toJSON: {"value":{"value":5,"currency":{"name":"euro","code":"EUR"}}}
  read from JSON: {"value":{"currency":{"code":"EUR","name":"euro"},"value":5}}
SEEN
