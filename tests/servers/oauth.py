"""Gets a token as an OAuth client, with the official Python SDK or with FastMCP, then calls a tool.

Prints the address for the browser as a line of JSON, reads from stdin the address that the browser came back to,
and prints what the tool answered.

    python oauth.py sdk|fastmcp URL TOOL '{"argument": 1}'
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

RETURNS_TO = "http://127.0.0.1:43210/callback"


async def open_browser(address: str) -> None:
    print(json.dumps({"open": address}), flush=True)


async def came_back() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    found = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))


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
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    metadata = OAuthClientMetadata(
        client_name="Python SDK",
        redirect_uris=[RETURNS_TO],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(url, metadata, Memory(), open_browser, came_back)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            result = await client.call_tool(tool, arguments)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def with_fastmcp(url: str, tool: str, arguments: dict) -> dict:
    from fastmcp import Client
    from fastmcp.client.auth import OAuth

    class Browserless(OAuth):
        async def redirect_handler(self, authorization_url: str) -> None:
            await open_browser(authorization_url)

        async def callback_handler(self) -> AuthorizationCodeResult:
            return await came_back()

    async with Client(url, auth=Browserless(callback_port=43210)) as client:
        result = await client.call_tool(tool, arguments)
    return {"structuredContent": result.structured_content}


async def main() -> None:
    mode, url, tool, arguments = sys.argv[1:]
    run = with_sdk if mode == "sdk" else with_fastmcp
    print(json.dumps({"result": await run(url, tool, json.loads(arguments))}))


asyncio.run(main())
