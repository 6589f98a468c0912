// Gets a token as an OAuth client with the official TypeScript SDK, then lists the tools and calls one. The first
// argument says with which of its packages; `bridge` is a client that speaks over stdio only and gets in by
// `mcp-remote`. Prints the address for the browser, which comes back to a port of this program, and at last a line
// of JSON with the names of the tools and the answer of the one that was called.
//
//   node oauth.mjs legacy|modern|bridge URL TOOL '{"argument":1}'

import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));

const [mode, url, tool, input] = process.argv.slice(2);
const info = { name: "portcullis-test", version: "1.0.0" };

// The client that asked to be let in, connected.
async function authorized(sdk, options, finish) {
  const callback = createServer().listen(0, "127.0.0.1");
  await once(callback, "listening");
  const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;
  const kept = {};
  const authProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: `TypeScript SDK ${mode}`,
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    state: () => "a-state",
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    redirectToAuthorization: (to) => console.log(to.href),
  };
  const connect = async () => {
    const client = new sdk.Client(info, options);
    const transport = new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider });
    const error = await client.connect(transport).then(() => undefined, (error) => error);
    return { client, transport, error };
  };
  const { transport, error } = await connect();
  if (!kept.verifier) throw error;
  const [request, response] = await once(callback, "request");
  response.end("Back in the program.");
  await finish(transport, new URL(request.url, redirectUrl).searchParams);
  const again = await connect();
  if (again.error) throw again.error;
  return again.client;
}

async function legacy() {
  const sdk = {
    ...(await load("@modelcontextprotocol/sdk/client/index.js")),
    ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  };
  return authorized(sdk, {}, (transport, back) => transport.finishAuth(back.get("code")));
}

async function modern() {
  const sdk = await load("@modelcontextprotocol/client");
  const options = { versionNegotiation: { mode: { pin: "2026-07-28" } } };
  return authorized(sdk, options, (transport, back) => transport.finishAuth(back));
}

async function bridge() {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
  const remote = join(process.env.PORTCULLIS_TEST_SERVERS, "node_modules/mcp-remote/dist/proxy.js");
  const client = new Client(info);
  const args = [remote, url, "--auth-timeout", "100"];
  await client.connect(
    // The browser of the test is not the one that it would open.
    new StdioClientTransport({ command: process.execPath, args, env: { ...process.env, BROWSER: "true" } }),
    { timeout: 110_000 },
  );
  return client;
}

const client = await { legacy, modern, bridge }[mode]();
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(input) });
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), result }));
await client.close();
process.exit(0);
