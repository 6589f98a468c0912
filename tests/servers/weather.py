"""A FastMCP server over streamable HTTP on a free loopback port, which it prints."""

import asyncio
import logging
import socket
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError

server = FastMCP("weather")


@server.tool
def forecast(city: str, days: int = 1) -> dict:
    """The weather of the next days."""
    return {"city": city, "days": [{"number": day + 1, "sky": "clear"} for day in range(days)]}


@server.tool
def contact(name: str) -> str:
    """The address of a meteorologist."""
    return f"{name}@weather.example.org"


@server.tool
def storm() -> str:
    """Always fails."""
    raise ToolError("no storm today")


@server.tool
async def headers(ctx: Context) -> list[str]:
    """The names of the headers this call came with."""
    return sorted(name.lower() for name in ctx.request_context.request.headers.keys())


def main() -> None:
    logging.disable(logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    asyncio.run(
        server.run_http_async(
            show_banner=False, transport="http", path="/mcp", sockets=[listener], log_level="error"
        )
    )


if __name__ == "__main__":
    sys.exit(main())
