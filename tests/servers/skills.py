"""Tells the skills of an MCP server as FastMCP's client sees them, which holds each file against its digest.

    [TOKEN=…] python skills.py URL
    python skills.py COMMAND ARGUMENT…
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.skills.client import SkillsClientExtension


def transport(server: list[str]):
    if server[0].startswith("http"):
        return StreamableHttpTransport(server[0], headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
    return StdioTransport(server[0], server[1:])


async def main() -> None:
    told = {}
    async with Client(transport(sys.argv[1:]), extensions=[SkillsClientExtension()]) as client:
        for skill in await client.list_skills():
            uri = str(skill.uri)
            entry = await client.get_skill(uri)
            whole = await client.read_skill(uri)
            told[uri] = {
                "listed": skill.model_dump(mode="json", exclude={"meta"}),
                "got": entry.model_dump(mode="json", exclude={"meta"}),
                "files": {name: text.decode("latin-1") for name, text in whole.files.items()},
            }
    print(json.dumps(told))


asyncio.run(main())
