"""A FastMCP server that requires the tokens of an issuer, on a free loopback port, which it prints.

It remembers whose token each call came with, beside what the call says about itself.
"""

import asyncio
import logging
import socket
import sys

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token

FOREIGN: list[str] = []


def build(issuer: str, port: int) -> FastMCP:
    base = f"http://127.0.0.1:{port}"
    verifier = JWTVerifier(
        jwks_uri=f"{issuer}/jwks",
        issuer=issuer,
        audience=f"{base}/mcp",
        required_scopes=["tools"],
    )
    auth = RemoteAuthProvider(
        token_verifier=verifier, authorization_servers=[issuer], base_url=base
    )
    server = FastMCP("guarded", auth=auth)

    @server.tool
    async def whoami(claims_to_be: str, pause: float = 0.0) -> dict:
        """Says whose token a call came with."""
        subject = get_access_token().claims["sub"]
        if subject != claims_to_be:
            FOREIGN.append(f"{subject} instead of {claims_to_be}")
        await asyncio.sleep(pause)
        return {"subject": subject}

    @server.tool
    def foreign() -> dict:
        """Every call that came with the token of somebody else than it said."""
        return {"foreign": FOREIGN}

    return server


def main() -> None:
    logging.disable(logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = build(sys.argv[1], port)
    print(port, flush=True)
    asyncio.run(
        server.run_http_async(
            show_banner=False, transport="http", path="/mcp", sockets=[listener], log_level="error"
        )
    )


if __name__ == "__main__":
    sys.exit(main())
