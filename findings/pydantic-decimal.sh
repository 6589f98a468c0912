#!/usr/bin/env bash
# Packages: pydantic 2.14.4 and jsonschema 4.26.0 (PyPI).
# Expected: the JSON schema of a model admits what the model takes, as far as JSON Schema can say it. MCP servers send
#   this schema as the input schema of a tool. pydantic takes a `Decimal` as a number or as text.
# Happens: bounds are written for the number only. The text has no pattern, so the schema admits any text at all, and
#   `max_digits` and `decimal_places` are gone for both. A bound is written as a float, so a bound beyond 2^53 moves and
#   the schema refuses the number that the model takes.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet pydantic==2.14.4 jsonschema==4.26.0

cat >run.py <<'PY'
import json
from decimal import Decimal
from typing import Annotated
from jsonschema import Draft202012Validator
from pydantic import Field, TypeAdapter, ValidationError

types = {
    "ge=0, le=100": (Annotated[Decimal, Field(ge=0, le=100)], [5, "5", 500, "500", "-5", "five"]),
    "decimal_places=2": (Annotated[Decimal, Field(decimal_places=2)], [0.25, 0.125, "0.125"]),
    "multiple_of=5": (Annotated[Decimal, Field(multiple_of=5)], [7, "7"]),
    "le=2**53+1": (Annotated[Decimal, Field(le=2**53 + 1)], [2**53, 2**53 + 1]),
}
for name, (type_, values) in types.items():
    adapter = TypeAdapter(type_)
    schema = adapter.json_schema()
    print(f"{name}: {json.dumps(schema)}")
    for value in values:
        try:
            adapter.validate_python(value)
            model = True
        except ValidationError:
            model = False
        says = ["takes" if taken else "refuses" for taken in (Draft202012Validator(schema).is_valid(value), model)]
        print(f"  {value!r}: schema {says[0]}, pydantic {says[1]}")
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
ge=0, le=100: {"anyOf": [{"maximum": 100.0, "minimum": 0.0, "type": "number"}, {"type": "string"}]}
  5: schema takes, pydantic takes
  '5': schema takes, pydantic takes
  500: schema refuses, pydantic refuses
  '500': schema takes, pydantic refuses
  '-5': schema takes, pydantic refuses
  'five': schema takes, pydantic refuses
decimal_places=2: {"anyOf": [{"type": "number"}, {"type": "string"}]}
  0.25: schema takes, pydantic takes
  0.125: schema takes, pydantic refuses
  '0.125': schema takes, pydantic refuses
multiple_of=5: {"anyOf": [{"multipleOf": 5.0, "type": "number"}, {"type": "string"}]}
  7: schema refuses, pydantic refuses
  '7': schema takes, pydantic refuses
le=2**53+1: {"anyOf": [{"maximum": 9007199254740992.0, "type": "number"}, {"type": "string"}]}
  9007199254740992: schema takes, pydantic takes
  9007199254740993: schema refuses, pydantic takes
SEEN
