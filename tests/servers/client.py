"""Speaks to an MCP server with the official Python SDK: lists its tools, calls one, and prints both.

    TOKEN=… python client.py legacy|2026-07-28 URL TOOL '{"argument": 1}'
"""

import asyncio
import json
import os
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def main() -> None:
    mode, url, tool, arguments = sys.argv[1:]
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool(tool, json.loads(arguments))
    given = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    print(json.dumps({"tools": [it.name for it in tools], "result": given}))


asyncio.run(main())
