// The MCP server whose tools, prompts and resources the official conformance suite asks for, over stdio, on the official
// TypeScript SDK, in both eras of the protocol.
//
//   PORTCULLIS_TEST_SERVERS=… node fixtures.mjs

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const { serveStdio, StdioServerTransport } = await load("@modelcontextprotocol/server/stdio");
const { TASK_TOOLS, TASKS, TaskTransport } = await import("./tasks.mjs");
const { McpServer, ProtocolError, ResourceTemplate } = sdk;
const { fromJsonSchema, inputRequired, acceptedContent } = sdk;
const { CLIENT_CAPABILITIES_META_KEY } = sdk;

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const pause = () => new Promise((done) => setTimeout(done, 50));
const object = (properties, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});

/** Results that depend on nothing. */
const CONSTANT = {
  test_simple_text: { content: [text("This is a simple text response for testing.")] },
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] },
  test_embedded_resource: {
    content: [
      resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ],
  },
  test_multiple_content_types: {
    content: [
      text("Multiple content types test:"),
      image,
      resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  },
  test_error_handling: {
    content: [text("This tool intentionally returns an error for testing")],
    isError: true,
  },
};

const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    address: { $ref: "#/$defs/address" },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { required: ["phone"] },
  then: { required: ["address"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

// State that goes through the client and comes back is signed.
const KEY = randomBytes(32);
const signature = (round) => createHmac("sha256", KEY).update(round).digest("base64url");
const sealed = (round) => `${round}.${signature(round)}`;
function opened(state) {
  const [round, mark] = String(state).split(".");
  const given = Buffer.from(mark ?? "");
  const wanted = Buffer.from(signature(round));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    throw new ProtocolError(-32602, "The request state is not ours.");
  }
  return round;
}

const form = (message, properties) =>
  inputRequired.elicit({ message, requestedSchema: object(properties) });
const sample = (question, maxTokens) =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: text(question) }],
    maxTokens,
  });
const askName = () => form("What is your name?", { name: { type: "string" } });
const done = (said) => ({ content: [text(said)] });

/** Tools that ask; given the responses, the state that came back, and what the client can do. */
const ASKING = {
  test_input_required_result_elicitation({ responses }) {
    const name = acceptedContent(responses, "user_name")?.name;
    if (typeof name === "string") return done(`Hello, ${name}!`);
    return inputRequired({ inputRequests: { user_name: askName() } });
  },
  test_input_required_result_sampling({ responses }) {
    const answer = responses?.capital_question;
    if (answer) return done(JSON.stringify(answer.content ?? answer));
    const capital_question = sample("What is the capital of France?", 100);
    return inputRequired({ inputRequests: { capital_question } });
  },
  test_input_required_result_list_roots({ responses }) {
    const roots = responses?.client_roots?.roots;
    if (roots) return done(`Roots: ${roots.map(({ uri }) => uri).join(", ")}`);
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  },
  test_input_required_result_request_state({ responses, state }) {
    if (state !== undefined && opened(state) && responses?.confirm) return done("state-ok");
    const confirm = form("Please confirm", { ok: { type: "boolean" } });
    return inputRequired({ inputRequests: { confirm }, requestState: sealed("confirm") });
  },
  test_input_required_result_tampered_state({ responses, state }) {
    if (state !== undefined && opened(state) && responses) return done("state-ok");
    const confirm = form("Please confirm", { ok: { type: "boolean" } });
    return inputRequired({ inputRequests: { confirm }, requestState: sealed("tampered") });
  },
  test_input_required_result_multiple_inputs({ responses, state }) {
    const all = ["user_name", "greeting", "client_roots"];
    if (state !== undefined && opened(state) && all.every((key) => responses?.[key])) {
      return done("All inputs arrived.");
    }
    const inputRequests = {
      user_name: askName(),
      greeting: sample("Generate a greeting", 50),
      client_roots: inputRequired.listRoots(),
    };
    return inputRequired({ inputRequests, requestState: sealed("multiple") });
  },
  test_input_required_result_multi_round({ responses, state }) {
    const round = state === undefined ? undefined : opened(state);
    if (round === "2" && responses?.step2) return done("Both steps are done.");
    if (round === "1" && responses?.step1) {
      const step2 = form("Step 2: What is your favorite color?", { color: { type: "string" } });
      return inputRequired({ inputRequests: { step2 }, requestState: sealed("2") });
    }
    const step1 = form("Step 1: What is your name?", { name: { type: "string" } });
    return inputRequired({ inputRequests: { step1 }, requestState: sealed("1") });
  },
  test_input_required_result_capabilities({ responses, capabilities }) {
    if (responses) return done("The responses arrived.");
    const inputRequests = {};
    if (capabilities?.elicitation) inputRequests.user_name = askName();
    if (capabilities?.sampling) inputRequests.greeting = sample("Generate a greeting", 50);
    if (capabilities?.roots) inputRequests.client_roots = inputRequired.listRoots();
    return Object.keys(inputRequests).length ? inputRequired({ inputRequests }) : done("Nothing to ask.");
  },
  test_streaming_elicitation({ responses }) {
    if (responses?.user_name) return done("Thank you.");
    return inputRequired({ inputRequests: { user_name: askName() } });
  },
};

/** Prompts: their arguments, and the contents of their messages. */
const PROMPTS = {
  test_simple_prompt: [[], () => [text("A simple prompt.")]],
  test_prompt_with_arguments: [["arg1", "arg2"], ({ arg1, arg2 }) => [text(`${arg1} and ${arg2}`)]],
  test_prompt_with_embedded_resource: [
    ["resourceUri"],
    ({ resourceUri }) => [
      resource(resourceUri, "text/plain", "What the resource holds."),
      text("Read the resource above."),
    ],
  ],
  test_prompt_with_image: [[], () => [image, text("Describe the image.")]],
};

/** Resources by URI. */
const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "A text that stays." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
};

/** Requests to the client while a call runs, which only the older era has. */
const ELICITED = {
  test_elicitation: {
    properties: { username: { type: "string" }, email: { type: "string" } },
    required: ["username", "email"],
  },
  test_elicitation_sep1034_defaults: {
    properties: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    },
  },
};

function build() {
  const server = new McpServer(
    { name: "fixtures", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        logging: {},
        prompts: {},
        resources: {},
        extensions: TASKS,
      },
    },
  );
  const tool = (name, schema, call) => {
    const inputSchema = fromJsonSchema(schema);
    server.registerTool(name, { description: "A fixture.", inputSchema }, call);
  };
  const nothing = { type: "object", properties: {} };
  for (const [name, result] of Object.entries(CONSTANT)) tool(name, nothing, () => result);
  tool("json_schema_2020_12_tool", SCHEMA_2020, (input) => done(JSON.stringify(input)));
  const mirrored = object({ region: { type: "string", "x-mcp-header": "Region" } });
  tool("test_x_mcp_header", mirrored, ({ region }) => done(region));
  for (const [name, answer] of Object.entries(ASKING)) {
    tool(name, nothing, (_, { mcpReq }) =>
      answer({
        responses: mcpReq.inputResponses,
        state: mcpReq.requestState(),
        capabilities: mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY],
      }),
    );
  }
  // The SDK refuses to ask a client for what it did not declare.
  tool("test_missing_capability", nothing, (_, { mcpReq }) =>
    mcpReq.inputResponses
      ? done("The client can sample.")
      : inputRequired({ inputRequests: { greeting: sample("Generate a greeting", 50) } }),
  );
  tool("greet", object({ name: { type: "string" } }), ({ name }) => done(`Hello, ${name}!`));
  for (const name of TASK_TOOLS) tool(name, nothing, () => done(`${name} is done at once.`));
  tool("test_logging_tool", nothing, () => done("Nothing was logged."));
  tool("test_tool_with_logging", nothing, async (_, { mcpReq }) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log?.("info", data);
      await pause();
    }
    return done("Logged.");
  });
  tool("test_tool_with_progress", nothing, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        const params = { progressToken, progress, total: 100 };
        await mcpReq.notify({ method: "notifications/progress", params });
      }
      await pause();
    }
    return done("Done.");
  });
  tool("test_sampling", object({ prompt: { type: "string" } }), async ({ prompt }, { mcpReq }) => {
    const messages = [{ role: "user", content: text(prompt) }];
    const answer = await mcpReq.requestSampling({ messages, maxTokens: 100 });
    return done(`LLM response: ${JSON.stringify(answer.content)}`);
  });
  for (const [name, schema] of Object.entries(ELICITED)) {
    const input = { type: "object", properties: { message: { type: "string" } } };
    tool(name, input, async ({ message = "Please tell." }, { mcpReq }) => {
      const answer = await mcpReq.elicitInput({ message, requestedSchema: { type: "object", ...schema } });
      return done(`User response: ${JSON.stringify(answer)}`);
    });
  }
  addPrompts(server);
  addResources(server);
  return server;
}

const messages = (contents) => ({ messages: contents.map((content) => ({ role: "user", content })) });

function addPrompts(server) {
  const description = "A fixture.";
  for (const [name, [names, make]] of Object.entries(PROMPTS)) {
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
    const argsSchema = names.length ? fromJsonSchema(object(properties)) : undefined;
    server.registerPrompt(name, { description, argsSchema }, (given) => messages(make(given)));
  }
  server.registerPrompt("test_input_required_result_prompt", { description }, ({ mcpReq }) => {
    const told = acceptedContent(mcpReq.inputResponses, "user_context")?.context;
    if (typeof told === "string") return messages([text(`In the context of ${told}.`)]);
    const user_context = form("Which context?", { context: { type: "string" } });
    return inputRequired({ inputRequests: { user_context } });
  });
}

function addResources(server) {
  for (const [uri, contents] of Object.entries(RESOURCES)) {
    const read = () => ({ contents: [{ uri, ...contents }] });
    server.registerResource(uri, uri, { mimeType: contents.mimeType }, read);
  }
  const complete = { id: (begin) => ["101", "102", "201"].filter((id) => id.startsWith(begin)) };
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined, complete });
  server.registerResource("template", template, { mimeType: "application/json" }, (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id }) }],
  }));
}

serveStdio(build, { transport: new TaskTransport(new StdioServerTransport()) });
