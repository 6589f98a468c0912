"""An MCP server of the official Python SDK whose resources change, of either era.

    python notes.py stdio|http

`touch` says that a resource changed, and `watched` tells the resources that clients of the older era asked about. Over
HTTP it listens on a free loopback port, which it prints.
"""

import asyncio
import logging
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

server = MCPServer("notes")
WATCHED: set[str] = set()


@server.resource("notes://a")
def first() -> str:
    return "A note."


@server.resource("notes://b")
def second() -> str:
    return "Another note."


@server.resource("notes://all/{name}")
def any_note(name: str) -> str:
    return f"The note {name}."


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Says that a resource changed."""
    await ctx.notify_resource_updated(uri)
    if uri in WATCHED:
        await ctx.session.send_resource_updated(uri)
    return uri


@server.tool()
def watched() -> list[str]:
    """Resources that clients of the older era asked about."""
    return sorted(WATCHED)


async def subscribe(ctx, params: SubscribeRequestParams) -> EmptyResult:
    WATCHED.add(str(params.uri))
    return EmptyResult()


async def unsubscribe(ctx, params: UnsubscribeRequestParams) -> EmptyResult:
    WATCHED.discard(str(params.uri))
    return EmptyResult()


def main() -> None:
    logging.disable(logging.CRITICAL)
    lowlevel = server._lowlevel_server
    lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
    if sys.argv[1] == "stdio":
        return server.run("stdio")
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


main()
