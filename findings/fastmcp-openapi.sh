#!/usr/bin/env bash
# Packages: fastmcp 4.2.3 and httpx2 2.16.2 (PyPI).
# Expected: a server made from an OpenAPI document calls the API as the document says. OpenAPI 3.1 writes a path
#   parameter of style `label` as `.a` and of style `matrix` as `;id=a` ("Style Values"), and one with `content` as the
#   text of that media type ("Parameter Object").
# Happens: fastmcp writes the path parameters as for style `simple`, and a parameter of `application/json` as separate
#   query parameters, without a warning. The API gets another address. Styles of query parameters are right.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet fastmcp==4.2.3 httpx2==2.16.2

cat >run.py <<'PY'
import asyncio, httpx2, logging
from fastmcp import Client, FastMCP
from urllib.parse import unquote

logging.disable(logging.CRITICAL)
texts = {"type": "array", "items": {"type": "string"}}
range_ = {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}}
parameters = {
    "simple": {"in": "path", "schema": texts},
    "label": {"in": "path", "schema": texts, "style": "label"},
    "matrix": {"in": "path", "schema": texts, "style": "matrix"},
    "pipes": {"in": "query", "schema": texts, "style": "pipeDelimited", "explode": False},
    "deep": {"in": "query", "schema": range_, "style": "deepObject", "explode": True},
    "json": {"in": "query", "content": {"application/json": {"schema": range_}}},
}
right = {
    "simple": "/simple/a,b", "label": "/label/.a,b", "matrix": "/matrix/;id=a,b", "pipes": "/pipes?id=a|b",
    "deep": "/deep?id[from]=1&id[to]=2", "json": '/json?id={"from":1,"to":2}',
}
paths = {}
for name, parameter in parameters.items():
    path = f"/{name}/{{id}}" if parameter["in"] == "path" else f"/{name}"
    parameter = {"name": "id", "required": True, **parameter}
    paths[path] = {"get": {"operationId": name, "parameters": [parameter], "responses": {"200": {"description": "ok"}}}}

def answer(request):
    return httpx2.Response(200, json={"address": unquote(str(request.url).removeprefix("https://api.example"))})

async def main():
    document = {"openapi": "3.1.0", "info": {"title": "API", "version": "1"}, "paths": paths}
    api = httpx2.AsyncClient(base_url="https://api.example", transport=httpx2.MockTransport(answer))
    async with Client(FastMCP.from_openapi(document, client=api)) as client:
        for name, address in right.items():
            value = {"from": 1, "to": 2} if "from" in address else ["a", "b"]
            print(f"right {address}, sent", (await client.call_tool(name, {"id": value})).structured_content["address"])

asyncio.run(main())
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
right /simple/a,b, sent /simple/a,b
right /label/.a,b, sent /label/a,b
right /matrix/;id=a,b, sent /matrix/a,b
right /pipes?id=a|b, sent /pipes?id=a|b
right /deep?id[from]=1&id[to]=2, sent /deep?id[from]=1&id[to]=2
right /json?id={"from":1,"to":2}, sent /json?from=1&to=2
SEEN
