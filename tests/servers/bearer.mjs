// Adds a token to each request on its way to an MCP server, for clients that cannot send one. Prints
// its port.
//
//   node bearer.mjs http://127.0.0.1:8080/mcp TOKEN

import http from "node:http";

const [target, token] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(target);

const proxy = http.createServer((request, response) => {
  // Host and origin stay as the client sent them, for the server to judge.
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const options = { hostname, port, path: pathname, method: request.method, headers };
  const upstream = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  upstream.on("error", () => response.destroy());
  response.on("close", () => upstream.destroy());
  request.pipe(upstream);
});

proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
process.stdin.on("end", () => process.exit()).resume();
