"""Calls a tool that people have to approve, with the official Python SDK or FastMCP, and prints the result.

When the gateway asks to open an address, the user answers as it is told here.

    TOKEN=… GATEWAY=… python approving.py sdk|fastmcp accept|decline|cancel TOOL '{"argument": 1}'
"""

import asyncio
import json
import os
import sys

import mcp
from fastmcp import Client as FastClient
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import ElicitResult as SdkResult

ERA = "2026-07-28"
HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
URL = f"{os.environ['GATEWAY']}/mcp"
opened = []


async def with_sdk(action, tool, arguments):
    async def asked(context, params):
        opened.append(params.url)
        return SdkResult(action=action)

    async with create_mcp_http_client(headers=HEADERS) as http:
        transport = streamable_http_client(URL, http_client=http)
        async with mcp.Client(transport, mode=ERA, elicitation_callback=asked) as client:
            result = await client.call_tool(tool, arguments)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def with_fastmcp(action, tool, arguments):
    async def asked(message, response_type, params, context):
        opened.append(params.url)
        return ElicitResult(action=action)

    transport = StreamableHttpTransport(URL, headers=HEADERS)
    async with FastClient(transport, mode=ERA, elicitation_handler=asked) as client:
        result = await client.call_tool(tool, arguments, raise_on_error=False)
    return {
        "isError": result.is_error,
        "structuredContent": result.structured_content,
        "content": [block.model_dump(mode="json") for block in result.content],
    }


async def main():
    kind, action, tool, arguments = sys.argv[1:]
    call = {"sdk": with_sdk, "fastmcp": with_fastmcp}[kind]
    result = await call(action, tool, json.loads(arguments))
    print(json.dumps({"opened": opened, "result": result}))


asyncio.run(main())
