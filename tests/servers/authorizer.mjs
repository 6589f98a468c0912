// An authorization server on a free loopback port for MCP servers that take its tokens: discovery,
// dynamic registration, Client ID Metadata Documents, PKCE, resource indicators, rotation,
// revocation. Driven like oidc.mjs by one JSON object a line; the first line tells its issuer.
//
//   {"do": "consent", "url": "", "subject": "", "until": ""}   plays a browser; gives where it ends
//   {"do": "life", "seconds": 60}                              of access tokens from now on
//   {"do": "end", "subject": ""}                               ends all grants of somebody
//   {"do": "document", "url": "", "text": ""}                  what an https address holds
//   {"do": "clients"}                                          who has registered

import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import { ask } from './ask.mjs';
import { newKey } from './keys.mjs';

// The answers are all that may stand on standard output.
console.info = console.warn;
console.log = console.warn;

const modules = join(process.env.PORTCULLIS_TEST_SERVERS, 'node_modules');
const library = join(modules, 'oidc-provider/lib/index.js');
const { default: Provider } = await import(pathToFileURL(library));

let life = 3600;
const documents = new Map();
const registered = [];
const ended = new Set();

const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const key = newKey('rsa', { modulusLength: 2048 });

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid: 'signing', use: 'sig', alg: 'RS256' }] },
  clients: [],
  cookies: { keys: ['test'] },
  scopes: ['openid', 'offline_access', 'tools'],
  clientDefaults: { id_token_signed_response_alg: 'RS256' },
  features: {
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        accessTokenFormat: 'jwt',
        accessTokenTTL: life,
        audience: resource,
        jwt: { sign: { alg: 'RS256' } },
        scope: 'tools',
      }),
      useGrantedResource: () => true,
    },
  },
  // Addresses that are not there are the test's own documents.
  fetch: (url, options) => {
    const text = documents.get(String(url));
    if (text === undefined) return fetch(url, options);
    return Promise.resolve(new Response(text, { headers: { 'content-type': 'application/json' } }));
  },
  findAccount: (ctx, accountId) =>
    ended.has(accountId) ? undefined : { accountId, claims: () => ({ sub: accountId }) },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  rotateRefreshToken: true,
});
provider.on('registration_create.success', (ctx, client) => registered.push(client.clientId));

const login = (request) => {
  const who = /(?:^|; )who=([^;]*)/.exec(request.headers.cookie ?? '')?.[1];
  return { login: { accountId: decodeURIComponent(who) } };
};

// Consents to whatever is asked.
async function granted({ prompt, params, session, grantId }) {
  const { accountId } = session;
  const grant =
    (grantId && (await provider.Grant.find(grantId))) ||
    new provider.Grant({ accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return { grantId: await grant.save() };
}

const subjects = new Map();
server.on('request', (request, response) => {
  (async () => {
    if (request.url.startsWith('/interaction/')) {
      const details = await provider.interactionDetails(request, response);
      const result =
        details.prompt.name === 'login' ? login(request) : { consent: await granted(details) };
      await provider.interactionFinished(request, response, result);
      return;
    }
    await provider.callback()(request, response);
  })().catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    response.writeHead(500).end();
  });
});

// Follows redirects as a browser of `subject` with cookies of its own would.
async function consent({ url: address, subject, until }) {
  const cookies = subjects.get(subject) ?? new Map([['who', encodeURIComponent(subject)]]);
  subjects.set(subject, cookies);
  for (let url = new URL(address), steps = 0; steps < 10; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const { cookies: told, location, text } = await ask(url, { headers: { cookie } });
    for (const set of told) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    if (!location) throw new Error(`no redirect from ${url}: ${text}`);
    url = new URL(location, url);
    if (url.href.startsWith(until)) return { url: url.href };
  }
  throw new Error('too many redirects');
}

const commands = {
  consent,
  life: ({ seconds }) => {
    life = seconds;
    return {};
  },
  end: ({ subject }) => {
    ended.add(subject);
    return {};
  },
  document: ({ url, text }) => {
    documents.set(url, text);
    return {};
  },
  clients: () => ({ clients: registered }),
};

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ issuer });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const command = JSON.parse(line);
    say(await commands[command.do](command));
  } catch (error) {
    say({ error: error.stack });
  }
}
process.exit();
