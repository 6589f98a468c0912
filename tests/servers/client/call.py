"""A client of the API in Python, by the package that openapi-python-client makes of its document. Imports all of
that package, and prints what the gateway answered and which operations there are."""

import importlib
import json
import pkgutil
import sys

import generated.api
from generated.api.audit import create_export, get_event, get_export
from generated.api.mcps import invoke_tool, list_tools
from generated.client import AuthenticatedClient
from generated.models.export_asked import ExportAsked
from generated.models.invoke_request import InvokeRequest

base, token, tool = sys.argv[1:]
modules = [it.name for it in pkgutil.walk_packages(generated.api.__path__, "generated.api.") if not it.ispkg]
for name in modules:
    importlib.import_module(name)

gateway = AuthenticatedClient(base_url=base, token=token, httpx_args={"trust_env": False})
listed = list_tools.sync(client=gateway)
called = invoke_tool.sync(tool, client=gateway, body=InvokeRequest.from_dict({"input": {"text": "hello"}}))
event = get_event.sync(called.governance.audit_event_id, client=gateway)
export = create_export.sync(client=gateway, body=ExportAsked(format_="csv"))
export = get_export.sync(export.data.id, client=gateway)
refused = invoke_tool.sync("nobody:nothing", client=gateway, body=InvokeRequest.from_dict({"input": {}}))
print(json.dumps({
    "tools": [it.id for it in listed.data.items],
    "decision": called.governance.decision,
    "result": called.result.to_dict(),
    "type": event.data.type_,
    "format": export.data.format_,
    "days": (export.data.to - export.data.from_).days,
    "code": refused.error.code,
    "operations": sorted(name.rpartition(".")[2] for name in modules),
}))
