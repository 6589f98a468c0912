// Gets a token without a browser with the official TypeScript SDK, then lists the tools and calls one: as a client
// that presents an ID-JAG of the identity provider (`id-jag`), or as a service account (`account`). Both sign with
// the key of CLIENT. Prints a line of JSON with the names of the tools and the answer of the one that was called.
//
//   ISSUER=… CLIENT=… KEY="-----BEGIN…" IDP=http://…/token node keyed.mjs id-jag|account URL TOOL '{"argument":1}'

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const sdk = await import(pathToFileURL(packages.resolve("@modelcontextprotocol/client")));

const [mode, url, tool, input] = process.argv.slice(2);
const { ISSUER, CLIENT, KEY, IDP } = process.env;
const scope = "mcps:read mcps:invoke";
const key = { privateKey: Buffer.from(KEY), alg: "EdDSA" };

function crossApp() {
  const provider = new sdk.CrossAppAccessProvider({
    assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
      const { jwtAuthGrant } = await sdk.requestJwtAuthorizationGrant({
        tokenEndpoint: IDP,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        idToken: "an-id-token",
        clientId: "agent-at-the-idp",
        scope,
        fetchFn,
      });
      return jwtAuthGrant;
    },
    clientId: CLIENT,
    clientSecret: "",
    expectedIssuer: ISSUER,
  });
  // The provider sends a client secret, unless it is given another method.
  provider.addClientAuthentication = sdk.createPrivateKeyJwtAuth({
    issuer: CLIENT,
    subject: CLIENT,
    ...key,
  });
  return provider;
}

function account() {
  const { privateKey, alg: algorithm } = key;
  const identity = { clientId: CLIENT, expectedIssuer: ISSUER, scope };
  return new sdk.PrivateKeyJwtProvider({ ...identity, privateKey, algorithm });
}

const authProvider = mode === "account" ? account() : crossApp();
const client = new sdk.Client({ name: "portcullis-test", version: "1.0.0" });
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(input) });
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), result }));
await client.close();
process.exit(0);
