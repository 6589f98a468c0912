// A request over a connection of its own. The pool behind `fetch` may put one on a connection that its
// server is just closing, and then waits for minutes for an answer that nobody gives.

import { request } from 'node:http';

export function ask(address, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((done, failed) => {
    const sent = request(address, { method, headers, agent: false }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('error', failed);
      response.on('end', () => {
        const { statusCode: status, headers: told } = response;
        done({
          status,
          cookies: told['set-cookie'] ?? [],
          location: told.location,
          text: Buffer.concat(parts).toString(),
        });
      });
    });
    sent.on('error', failed);
    sent.end(body);
  });
}
