// Gets a token as an OAuth client with the official TypeScript SDK, then calls a tool. The first argument says
// with which of its packages. Prints the address for the browser as a line of JSON, reads from stdin the address
// that the browser came back to, and prints what the tool answered.
//
//   node oauth.mjs legacy|modern URL TOOL '{"argument":1}'

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));

const [era, url, tool, input] = process.argv.slice(2);
const sdk = era === "legacy"
  ? {
    ...(await load("@modelcontextprotocol/sdk/client/index.js")),
    ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }
  : await load("@modelcontextprotocol/client");

const kept = {};
const authProvider = {
  redirectUrl: "http://127.0.0.1:43210/callback",
  clientMetadata: {
    client_name: `TypeScript SDK ${era}`,
    redirect_uris: ["http://127.0.0.1:43210/callback"],
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
  redirectToAuthorization: (to) => { console.log(JSON.stringify({ open: to.href })); },
};

const info = { name: "portcullis-test", version: "1.0.0" };
const options = era === "legacy" ? {} : { versionNegotiation: { mode: { pin: "2026-07-28" } } };
const connect = async () => {
  const client = new sdk.Client(info, options);
  const transport = new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider });
  try {
    await client.connect(transport);
    return { client };
  } catch (error) {
    return { transport, error };
  }
};

let { client, transport, error } = await connect();
if (!client) {
  if (!kept.verifier) throw error;
  const back = new URL(await createInterface({ input: process.stdin }).question(""));
  await transport.finishAuth(era === "legacy" ? back.searchParams.get("code") : back.searchParams);
  ({ client, error } = await connect());
  if (!client) throw error;
}
const result = await client.callTool({ name: tool, arguments: JSON.parse(input) });
console.log(JSON.stringify({ result, refreshable: Boolean(kept.tokens.refresh_token) }));
await client.close();
process.exit(0);
