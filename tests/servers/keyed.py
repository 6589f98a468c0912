"""Gets a token without a browser with the official Python SDK, then lists the tools and calls one.

As a client that presents an ID-JAG of the identity provider (`id-jag`), or as a service account (`account`). Both
sign with the key of CLIENT. Prints a line of JSON with the names of the tools and the answer of the one that was
called.

    ISSUER=… CLIENT=… KEY="-----BEGIN…" IDP=http://…/token python keyed.py id-jag|account URL TOOL '{"argument": 1}'
"""

import asyncio
import json
import os
import sys
import time
from urllib.parse import parse_qsl
from uuid import uuid4

import httpx2
import jwt
from mcp import Client
from mcp.client.auth.extensions.client_credentials import PrivateKeyJWTOAuthProvider, SignedJWTParameters
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ISSUER, CLIENT, KEY = (os.environ[name] for name in ["ISSUER", "CLIENT", "KEY"])
SCOPE = "mcps:read mcps:invoke"


class Memory:
    """Keeps tokens for as long as the program runs."""

    tokens = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return None

    async def set_client_info(self, client):
        pass


async def id_jag(audience: str, resource: str) -> str:
    """The SDK leaves this leg to its users."""
    fields = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "audience": audience,
        "resource": resource,
        "subject_token": "an-id-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "client_id": "agent-at-the-idp",
        "scope": SCOPE,
    }
    async with httpx2.AsyncClient() as http:
        answer = await http.post(os.environ["IDP"], data=fields)
    return answer.json()["access_token"]


class SignedIdentityAssertion(IdentityAssertionOAuthProvider):
    """The provider of the SDK always sends a client secret: here its request is signed instead."""

    def _build_token_request(self, scope, assertion):
        request = super()._build_token_request(scope, assertion)
        fields = dict(parse_qsl(request.content.decode()))
        del fields["client_secret"]
        now = int(time.time())
        proof = {"iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "jti": str(uuid4()), "iat": now, "exp": now + 60}
        fields["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        fields["client_assertion"] = jwt.encode(proof, KEY, algorithm="EdDSA")
        return httpx2.Request("POST", request.url, data=fields)


async def main() -> None:
    mode, url, tool, arguments = sys.argv[1:]
    if mode == "account":
        signed = SignedJWTParameters(issuer=CLIENT, subject=CLIENT, signing_key=KEY, signing_algorithm="EdDSA")
        prove = signed.create_assertion_provider()
        auth = PrivateKeyJWTOAuthProvider(url, Memory(), CLIENT, prove, SCOPE, ISSUER)
    else:
        auth = SignedIdentityAssertion(url, Memory(), CLIENT, "none", ISSUER, id_jag, SCOPE)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool(tool, json.loads(arguments))
    given = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    print(json.dumps({"tools": [it.name for it in tools], "result": given}))


asyncio.run(main())
