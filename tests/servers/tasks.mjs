// Calls that go on as tasks (`io.modelcontextprotocol/tasks`), which the SDK does not have: they are answered in front of
// a server over stdio, whose own tools of the same names answer whoever did not declare tasks.

import { randomUUID } from "node:crypto";

const EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const TTL = 600_000;

const result = (said, isError = false) => ({ content: [{ type: "text", text: said }], isError });
const ask = (property) => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "Please tell.",
    requestedSchema: { type: "object", properties: { [property]: { type: "string" } } },
  },
});
const after = (ms) => new Promise((done) => setTimeout(done, ms));

/** What the tools do as tasks, and what they ask before. */
const TOOLS = {
  slow_compute: async (task, { seconds = 0, label = "" }) => {
    await after(seconds * 1000);
    return result(`Computed ${label} in ${seconds} s.`);
  },
  failing_job: async () => {
    await after(1000);
    return result("The job failed.", true);
  },
  protocol_error_job: async () => {
    await after(200);
    throw new Error("The job broke.");
  },
  confirm_delete: async (task, { filename }) => {
    await task.answers({ confirm: ask("confirm") });
    return result(`Deleted ${filename}.`);
  },
  multi_input: async (task) => {
    await task.answers({ first: ask("name"), second: ask("name") });
    return result("Both arrived.");
  },
  test_tool_with_task: async (task, input, { user_name }) => result(`Hello, ${user_name.content.name}!`),
};
const ASKED_BEFORE = { test_tool_with_task: { user_name: ask("name") } };
/** Tools that answer nobody who did not declare tasks. */
const REQUIRED = ["failing_job"];

export const TASK_TOOLS = Object.keys(TOOLS);
export const TASKS = { [EXTENSION]: {} };

class Task {
  constructor(run) {
    const now = new Date().toISOString();
    const about = { taskId: randomUUID(), createdAt: now, lastUpdatedAt: now, ttlMs: TTL, pollIntervalMs: 100 };
    this.told = { ...about, status: "working" };
    run(this).then(
      (result) => this.becomes("completed", { result }),
      ({ message }) => this.becomes("failed", { error: { code: -32603, message } }),
    );
  }

  becomes(status, more) {
    if (this.told.status !== "working" && this.told.status !== "input_required") return;
    const { inputRequests, ...told } = this.told;
    this.told = { ...told, status, lastUpdatedAt: new Date().toISOString(), ...more };
  }

  answers(requests) {
    this.becomes("input_required", { inputRequests: requests });
    return new Promise((done) => (this.done = done));
  }

  update(responses) {
    if (this.told.status !== "input_required") return;
    const left = Object.entries(this.told.inputRequests).filter(([name]) => !(name in responses));
    if (left.length) return this.becomes("input_required", { inputRequests: Object.fromEntries(left) });
    this.becomes("working");
    this.done();
  }
}

/** A transport that answers calls and requests about tasks itself. */
export class TaskTransport {
  tasks = new Map();

  constructor(wire) {
    this.wire = wire;
    wire.onmessage = (message, extra) => {
      const answer = this.answer(message.method, message.params ?? {});
      if (answer) wire.send({ jsonrpc: "2.0", id: message.id, ...answer });
      else this.onmessage?.(message, extra);
    };
    wire.onclose = () => this.onclose?.();
    wire.onerror = (error) => this.onerror?.(error);
  }

  start() {
    return this.wire.start();
  }

  send(message, options) {
    return this.wire.send(message, options);
  }

  close() {
    return this.wire.close();
  }

  answer(method, { name, arguments: input = {}, taskId, inputResponses = {}, _meta = {} }) {
    const declared = _meta[CAPABILITIES]?.extensions?.[EXTENSION];
    if (method === "tools/call" && TOOLS[name]) {
      if (!declared) return REQUIRED.includes(name) ? missing : undefined;
      const asked = ASKED_BEFORE[name] ?? {};
      if (Object.keys(asked).some((key) => !inputResponses[key])) {
        return { result: { resultType: "input_required", inputRequests: asked } };
      }
      const task = new Task((task) => TOOLS[name](task, input, inputResponses));
      this.tasks.set(task.told.taskId, task);
      return { result: { resultType: "task", ...task.told } };
    }
    if (!["tasks/get", "tasks/update", "tasks/cancel"].includes(method)) return undefined;
    if (!declared) return missing;
    const task = this.tasks.get(taskId);
    if (!task) return { error: { code: -32602, message: "There is no such task." } };
    if (method === "tasks/get") return { result: { resultType: "complete", ...task.told } };
    if (method === "tasks/update") task.update(inputResponses);
    else task.becomes("cancelled");
    return { result: { resultType: "complete" } };
  }
}

const missing = {
  error: {
    code: -32021,
    message: "Declare tasks.",
    data: { requiredCapabilities: { extensions: TASKS } },
  },
};
