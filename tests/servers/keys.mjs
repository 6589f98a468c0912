// A new private key as a JWK. It goes by way of PEM: Node.js 20 locks a pair while it exports it as JWK, and waits for
// that lock for ever when the garbage collector frees the job that made the pair meanwhile.

import { createPrivateKey, generateKeyPairSync } from 'node:crypto';

export function newKey(type, options = {}) {
  const { privateKey } = generateKeyPairSync(type, {
    ...options,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return createPrivateKey(privateKey).export({ format: 'jwk' });
}
