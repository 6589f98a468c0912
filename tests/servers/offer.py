"""Tells what an MCP server offers, as the official Python SDK sees it: tools and what they answer, prompts, resources,
templates and values of arguments. Digits are told as 0, for some are times.

    [TOKEN=…] python offer.py MODE WANTED PREFIX URL
    python offer.py MODE WANTED "" COMMAND ARGUMENT…

WANTED is JSON as of offer.mjs, and `calls`: `[["TOOL", {…}]]`. With a PREFIX, names and URIs carry it, and it is
taken off what is told.
"""

import asyncio
import json
import os
import re
import sys

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import PromptReference, ResourceTemplateReference

mode, wanted, prefix, *server = sys.argv[1:]
wanted = json.loads(wanted)
ADDED = {"_meta", "ttlMs", "cacheScope", "resultType", "execution"}


def named(name: str) -> str:
    return f"{prefix}__{name}" if prefix else name


def addressed(uri: str) -> str:
    return f"{prefix}+{uri}" if prefix else uri


def bare(text: str) -> str:
    starts = (f"{prefix}__", f"{prefix}+") if prefix else ()
    return next((text.removeprefix(start) for start in starts if text.startswith(start)), text)


def plain(value: object) -> object:
    """Without what gateways and eras add, the prefix, digits, and members that are as good as absent."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if name not in ADDED and member not in (None, [], False)}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return re.sub(r"\d", "0", bare(value)) if isinstance(value, str) else value


def own(entry: dict) -> bool:
    key = entry.get("uri") or entry.get("uriTemplate") or entry["name"]
    return not key.startswith("skill://") and (not prefix or bare(key) != key)


async def told(asked) -> object:
    try:
        answer = await asked
    except MCPError as error:
        return {"error": error.code}
    return plain(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


async def listed(client: Client, kind: str, member: str) -> list:
    try:
        page = await getattr(client, f"list_{kind}")()
    except MCPError:
        return []
    dumped = page.model_dump(mode="json", by_alias=True, exclude_none=True)[member]
    return [entry for entry in dumped if own(entry)]


async def completion(client: Client, asked: dict) -> object:
    ref = asked["ref"]
    is_prompt = ref["type"] == "ref/prompt"
    about = PromptReference(name=named(ref["name"])) if is_prompt else ResourceTemplateReference(uri=addressed(ref["uri"]))
    others = asked.get("context", {}).get("arguments")
    values = await told(client.complete(about, asked["argument"], context_arguments=others))
    # Of templates the gateway tells no number of all values.
    values.get("completion", {}).pop("total", None)
    return values


async def offer(client: Client) -> dict:
    kinds = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resource_templates": "resourceTemplates"}
    lists = {kind: await listed(client, kind, member) for kind, member in kinds.items()}
    names = [entry["name"] for entry in lists["prompts"]]
    uris = [entry["uri"] for entry in lists["resources"]]
    uris += [addressed(uri) for uri in wanted.get("uris", [])]
    prompts = wanted.get("prompts", {})
    return {
        **{kind: sorted(plain(entries), key=json.dumps) for kind, entries in lists.items()},
        "got": {bare(name): await told(client.get_prompt(name, prompts.get(bare(name), {}))) for name in names},
        "read": {bare(uri): await told(client.read_resource(uri)) for uri in uris},
        "completed": [await completion(client, asked) for asked in wanted.get("completions", [])],
        "called": [await told(client.call_tool(named(tool), given)) for tool, given in wanted.get("calls", [])],
    }


async def main() -> None:
    if server[0].startswith("http"):
        headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
        async with create_mcp_http_client(headers=headers) as http:
            async with Client(streamable_http_client(server[0], http_client=http), mode=mode) as client:
                print(json.dumps(await offer(client)))
        return
    started = StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ))
    with open(os.devnull, "w") as log:
        async with Client(stdio_client(started, errlog=log), mode=mode) as client:
            print(json.dumps(await offer(client)))


asyncio.run(main())
