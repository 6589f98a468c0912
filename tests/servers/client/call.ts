// A client of the API in TypeScript, over the types that openapi-typescript makes of its document.
// It compiles only if the document says enough, and prints what the gateway answered.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const [base, token, tool] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({
  baseUrl: base,
  headers: { Authorization: `Bearer ${token}` },
});

function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const listed = must(await client.GET("/v1/mcps", { params: { query: { view: "full" } } }));
const found = listed.data.items.find((item) => item.id === tool);
if (found === undefined) throw new Error(`no tool ${tool}`);
const access: "allow" | "deny" | "conditional" = found.access;

const called = must(
  await client.POST("/v1/mcps/{id}/invoke", {
    params: { path: { id: tool } },
    body: { input: { text: "hello" } },
  }),
);
const decision: "allow" | "deny" = called.governance.decision;

const event = must(
  await client.GET("/v1/audit/events/{id}", {
    params: { path: { id: called.governance.audit_event_id } },
  }),
);
const type: Schemas["EventType"] = event.data.type;

const refused = await client.POST("/v1/mcps/{id}/invoke", {
  params: { path: { id: "nobody:nothing" } },
  body: { input: {} },
});
const code: Schemas["ErrorCode"] | undefined = refused.error?.error.code;
const executed: "no" | "yes" | "unknown" | null | undefined =
  refused.error?.error.details.executed;

const policies = must(await client.GET("/v1/policies"));
const effects: ("permit" | "forbid")[] = policies.data.items.map((policy) => policy.effect);
const providers = must(await client.GET("/v1/providers"));
const statuses: Schemas["ProviderStatus"][] = providers.data.items.map((it) => it.status);

console.log(
  JSON.stringify({
    access,
    decision,
    outcome: called.meta.outcome,
    result: called.result,
    type,
    executed_by_tool: event.data.outcome.executed,
    code,
    executed,
    effects: effects.length > 0,
    statuses,
  }),
);
