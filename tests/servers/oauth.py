"""Gets a token as an OAuth client, with the official Python SDK or with FastMCP, then lists the tools and calls one.

The address for the browser is printed, by FastMCP with the program that BROWSER names. The browser comes back to a
port of this program. At last a line of JSON has the names of the tools and the answer of the one that was called.

    python oauth.py sdk|fastmcp URL TOOL '{"argument": 1}'
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit


class Memory:
    """Keeps tokens for as long as the program runs."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def with_sdk(url: str, tool: str, arguments: dict) -> dict:
    from mcp import Client
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    back = asyncio.get_running_loop().create_future()

    async def take(reader, writer):
        path = (await reader.readline()).split(b" ")[1].decode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 20\r\n\r\nBack in the program.")
        await writer.drain()
        writer.close()
        found = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        if "code" in found and not back.done():
            back.set_result(found)

    async def open_browser(address: str) -> None:
        print(address, flush=True)

    async def came_back() -> AuthorizationCodeResult:
        found = await back
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async with await asyncio.start_server(take, "127.0.0.1", 0) as callback:
        port = callback.sockets[0].getsockname()[1]
        metadata = OAuthClientMetadata(
            client_name="Python SDK",
            redirect_uris=[f"http://127.0.0.1:{port}/callback"],
            token_endpoint_auth_method="none",
        )
        auth = OAuthClientProvider(url, metadata, Memory(), open_browser, came_back)
        async with create_mcp_http_client(auth=auth) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                tools = (await client.list_tools()).tools
                result = await client.call_tool(tool, arguments)
    given = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"tools": [it.name for it in tools], "result": given}


async def with_fastmcp(url: str, tool: str, arguments: dict) -> dict:
    from fastmcp import Client

    async with Client(url, auth="oauth") as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, arguments)
    given = {"structuredContent": result.structured_content}
    return {"tools": [it.name for it in tools], "result": given}


async def main() -> None:
    mode, url, tool, arguments = sys.argv[1:]
    run = with_sdk if mode == "sdk" else with_fastmcp
    print(json.dumps(await run(url, tool, json.loads(arguments))))


asyncio.run(main())
