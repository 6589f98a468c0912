// An OpenID provider on a free loopback port, driven by one JSON object a line on its standard
// input; each is answered by one on its standard output. The first line it prints tells its issuer.
//
//   {"do": "service_token", "claims": {}, "audience": "", "ttl": 300, "alg": "RS256"}
//   {"do": "user_token", "subject": "", "claims": {}, "audience": "", "ttl": 300, "alg": "RS256"}
//   {"do": "logout_token", "subject": "", "audience": ""}
//   {"do": "client_key"}                a new private key for clients, in PEM
//   {"do": "client", "id": "", "secret": "", "redirect": "", "logout": ""}
//                                       a client at which people log in; without a secret it has the client key
//   {"do": "browse", "url": "", "subject": "", "claims": {}, "until": ""}
//                                       plays the browser of somebody from an address on
//   {"do": "pages", "claims": {}}       shows real browsers its own pages for login and consent from now on
//   {"do": "forge", "header": {}, "claims": {}}
//                                       changes the ID tokens that the token endpoint gives from now on
//   {"do": "rotate", "keep": true}      new keys; the old ones stay published or are withdrawn
//   {"do": "stop"}, {"do": "resume"}    an outage, on the same port
//   {"do": "clock", "seconds": -7200}   its clock, as it differs from the machine's
//   {"do": "jwks"}                      what it publishes as its keys
//   {"do": "fetches"}                   how often each document was asked for
//
// A service token is an access token in JWT form by the client credentials grant, whose claims may
// replace `sub`, as a CI system's would. A user token is an ID token by the authorization code flow
// with PKCE, through the provider's own endpoints; the person at the login page is played here.

import { createHash, createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import { ask } from './ask.mjs';
import { newKey } from './keys.mjs';

// The answers are all that may stand on standard output.
console.info = console.warn;
console.log = console.warn;

const library = join(process.env.PORTCULLIS_TEST_SERVERS, 'node_modules/oidc-provider/lib/index.js');
const { default: Provider } = await import(pathToFileURL(library));

const SECRET = 'a secret between the provider and its test clients';
const REDIRECT = 'https://client.example/callback';
const realNow = Date.now;
let shift = 0;
Date.now = () => realNow() + shift * 1000;

let keys = [];
let clients = new Map();
let wanted = { claims: {}, ttl: 300, alg: 'RS256', audience: '' };
let provider;
let counts = { discovery: 0, jwks: 0 };
let person = '';
let built = '';
let clientKey;
let forged;
let hasPages = false;

function newKeys() {
  const made = [
    ['RS256', newKey('rsa', { modulusLength: 2048 })],
    ['ES256', newKey('ec', { namedCurve: 'P-256' })],
    ['EdDSA', newKey('ed25519')],
  ];
  return made.map(([name, key]) => ({
    ...key,
    kid: `${name}-${randomBytes(6).toString('hex')}`,
    use: 'sig',
  }));
}

// In place of its pages: everybody is logged in and consents.
const played = {
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  loadExistingGrant: async (ctx) => {
    const { client, session } = ctx.oidc;
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope('openid profile email');
    await grant.save();
    return grant;
  },
};

const settings = () => JSON.stringify([wanted.claims, wanted.ttl, wanted.alg, wanted.audience]);

function rebuild() {
  built = settings();
  provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      {
        client_id: 'ci',
        client_secret: SECRET,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_post',
      },
      ...clients.values(),
    ],
    conformIdTokenClaims: false,
    claims: { openid: ['sub', ...Object.keys(wanted.claims)] },
    cookies: { keys: ['test'] },
    features: {
      backchannelLogout: { enabled: true },
      clientCredentials: { enabled: true },
      devInteractions: { enabled: hasPages },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          accessTokenFormat: 'jwt',
          accessTokenTTL: wanted.ttl,
          audience: wanted.audience,
          jwt: { sign: { alg: wanted.alg } },
          scope: '',
        }),
      },
    },
    findAccount: (ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...wanted.claims }),
    }),
    formats: {
      customizers: {
        jwt: (ctx, token, jwt) => Object.assign(jwt.payload, wanted.claims),
      },
    },
    ...(hasPages ? {} : played),
    pkce: { required: () => true },
    ttl: { ClientCredentials: () => wanted.ttl, IdToken: () => wanted.ttl },
  });
}

async function handle(request, response) {
  // After an outage nobody shall meet a connection from before it.
  response.setHeader('connection', 'close');
  if (request.url.startsWith('/.well-known/')) counts.discovery += 1;
  if (request.url.startsWith('/jwks')) counts.jwks += 1;
  if (!hasPages && request.url.startsWith('/interaction/')) {
    const { params } = await provider.interactionDetails(request, response);
    const { amr, acr } = wanted.claims;
    const result = { login: { accountId: params.login_hint ?? person, amr, acr } };
    await provider.interactionFinished(request, response, result);
    return;
  }
  if (forged && request.url === '/token') forgeAnswer(response);
  await provider.callback()(request, response);
}

// Puts another ID token into the answer, as an issuer would that is not the one it says it is, or is broken.
function forgeAnswer(response) {
  const end = response.end.bind(response);
  response.end = (body) => {
    const answer = JSON.parse(body);
    if (answer.id_token) answer.id_token = forge(answer.id_token);
    const text = JSON.stringify(answer);
    response.setHeader('content-length', Buffer.byteLength(text));
    return end(text);
  };
}

function forge(token) {
  const [header, claims] = token.split('.').slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url')));
  Object.assign(header, forged.header);
  Object.assign(claims, forged.claims);
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  if (header.alg === 'none') return `${signed}.`;
  const key = createPrivateKey({ format: 'jwk', key: keys.find(({ kid }) => kid === header.kid) });
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    response.writeHead(500).end();
  });
});
const listen = (port) => new Promise((done) => server.listen(port, '127.0.0.1', done));
await listen(0);
const { port } = server.address();
const issuer = `http://127.0.0.1:${port}`;

async function post(path, form) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams(form).toString();
  const { status, text } = await ask(issuer + path, { method: 'POST', headers, body });
  if (status !== 200) throw new Error(text);
  return JSON.parse(text);
}

async function serviceToken() {
  const answer = await post('/token', {
    grant_type: 'client_credentials',
    client_id: 'ci',
    client_secret: SECRET,
    resource: 'urn:test:gateway',
  });
  return { token: answer.access_token };
}

// Follows the provider's redirects as a browser with cookies would, to the client's own address.
async function browse(address, until = REDIRECT) {
  const cookies = new Map();
  for (let url = new URL(address), steps = 0; steps < 10; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const { cookies: told, location, text } = await ask(url, { headers: { cookie } });
    for (const set of told) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      cookies.set(name, value);
    }
    if (!location) throw new Error(`no redirect from ${url}: ${text}`);
    url = new URL(location, url);
    if (url.href.startsWith(until)) return url;
  }
  throw new Error('too many redirects');
}

function client() {
  const alg = wanted.alg;
  clients.set(wanted.audience, {
    client_id: wanted.audience,
    client_secret: SECRET,
    id_token_signed_response_alg: alg,
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'client_secret_post',
  });
  rebuild();
}

async function userToken({ subject }) {
  client();
  const verifier = randomBytes(32).toString('base64url');
  const asked = new URLSearchParams({
    client_id: wanted.audience,
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid',
    login_hint: subject,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const back = await browse(`${issuer}/auth?${asked}`);
  const answer = await post('/token', {
    grant_type: 'authorization_code',
    client_id: wanted.audience,
    client_secret: SECRET,
    code: back.searchParams.get('code'),
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  });
  return { token: answer.id_token };
}

// The token by which a provider tells its clients that somebody logged out.
async function logoutToken({ subject }) {
  client();
  const found = await provider.Client.find(wanted.audience);
  const token = new provider.IdToken({ sub: subject }, { client: found });
  token.mask = { sub: null };
  token.set('events', { 'http://schemas.openid.net/event/backchannel-logout': {} });
  return { token: await token.issue({ use: 'logout' }) };
}

function loginClient({ id, secret, redirect, logout }) {
  clients.set(id, {
    client_id: id,
    redirect_uris: [redirect],
    post_logout_redirect_uris: [logout],
    ...(secret
      ? { client_secret: secret }
      : {
        jwks: { keys: [createPublicKey(clientKey).export({ format: 'jwk' })] },
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
      }),
  });
  rebuild();
  return {};
}

async function play({ url, subject, until }) {
  person = subject;
  // A provider that is made anew has forgotten the codes that it gave.
  if (settings() !== built) rebuild();
  return { url: (await browse(url, until)).href };
}

const commands = {
  client_key: () => {
    clientKey = createPrivateKey({ format: 'jwk', key: newKey('ec', { namedCurve: 'P-256' }) });
    return { pem: clientKey.export({ type: 'pkcs8', format: 'pem' }) };
  },
  client: loginClient,
  browse: play,
  pages: () => {
    hasPages = true;
    rebuild();
    return {};
  },
  forge: ({ header, claims }) => {
    forged = header && { header, claims };
    return {};
  },
  service_token: serviceToken,
  user_token: userToken,
  logout_token: logoutToken,
  rotate: ({ keep }) => {
    keys = keep ? [...newKeys(), ...keys] : newKeys();
    rebuild();
    return {};
  },
  stop: () => new Promise((done) => {
    server.close(() => done({}));
    server.closeAllConnections();
  }),
  resume: () => listen(port).then(() => ({})),
  clock: ({ seconds }) => {
    shift = seconds;
    return {};
  },
  jwks: () => {
    const published = keys.map(({ d, p, q, dp, dq, qi, ...jwk }) => jwk);
    return { jwks: { keys: published } };
  },
  fetches: () => ({ ...counts }),
};

keys = newKeys();
rebuild();
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ issuer });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const command = JSON.parse(line);
    if (command.claims && command.do !== 'forge') wanted = { ttl: 300, alg: 'RS256', audience: '', ...command };
    say(await commands[command.do](command));
  } catch (error) {
    say({ error: error.stack });
  }
}
process.exit();
