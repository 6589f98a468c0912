#!/usr/bin/env bash
# Packages: sse-starlette 3.7.0, starlette 1.10.0, httpx 0.28.1, httpx-sse 0.4.3 and sseclient-py 1.9.0 (PyPI).
# Expected: a reader of server-sent events ignores comments, drops an event that the end of the stream cuts off, and
#   keeps the last event ID for later events (HTML Standard, sections 9.2.5 and 9.2.6). Servers send comments to keep
#   streams open, sse-starlette each 15 seconds; MCP (2026-07-28, streamable HTTP) encourages it.
# Happens: as soon as one event had an ID, httpx-sse gives an empty `message` for each comment, so code that reads each
#   message as JSON fails in the first pause. sseclient-py forgets the ID and gives the cut-off event.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet sse-starlette==3.7.0 starlette==1.10.0 httpx==0.28.1 httpx-sse==0.4.3 sseclient-py==1.9.0

cat >run.py <<'PY'
import asyncio, httpx, httpx_sse, re, sseclient
from sse_starlette.sse import EventSourceResponse

async def events():
    yield {"id": "1", "data": '{"step": 1}'}
    await asyncio.sleep(1.5)
    yield {"data": '{"step": 2}'}

async def record():
    parts = []
    async def send(message):
        parts.append(message.get("body", b""))
    async def receive():
        await asyncio.sleep(60)
    await EventSourceResponse(events(), ping=1)({"type": "http", "method": "GET"}, receive, send)
    return b"".join(parts)

stream = asyncio.run(record()) + b"data: cut off"
print(re.sub(r"ping - [^\\]*", "ping", repr(stream)))
source = httpx_sse.EventSource(httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream))
print("httpx-sse:", [(event.event, event.data, event.id) for event in source.iter_sse()])
print("sseclient-py:", [(event.event, event.data, event.id) for event in sseclient.SSEClient([stream]).events()])
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
b'id: 1\r\ndata: {"step": 1}\r\n\r\n: ping\r\n\r\ndata: {"step": 2}\r\n\r\ndata: cut off'
httpx-sse: [('message', '{"step": 1}', '1'), ('message', '', '1'), ('message', '{"step": 2}', '1')]
sseclient-py: [('message', '{"step": 1}', '1'), ('message', '{"step": 2}', None), ('message', 'cut off', None)]
SEEN
