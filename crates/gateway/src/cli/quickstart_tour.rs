//! The three calls of the quickstart, made through the gateway's own port and printed as lines
//! that can be copied.

use std::path::Path;

use portcullis_core::secret::Secret;
use portcullis_upstream::{Credential, probe};
use serde_json::{Value, json};

use super::output::{Failure, Output, json_text};

struct Stop {
    title: &'static str,
    tool: &'static str,
    input: fn() -> Value,
}

const STOPS: [Stop; 3] = [
    Stop {
        title: "1. Allowed: reading is permitted",
        tool: "sample:list_items",
        input: || json!({"limit": 2}),
    },
    Stop {
        title: "2. Denied: a policy forbids listing more than 100 at once",
        tool: "sample:list_items",
        input: || json!({"limit": 500}),
    },
    Stop {
        title: "3. Redacted: the e-mail address and card number in the answer are masked",
        tool: "sample:get_customer",
        input: || json!({"id": "cus_1001"}),
    },
];

/// Ways into the gateway of the tour.
pub(super) struct Ways<'a> {
    pub(super) url: &'a str,
    pub(super) token: &'a Secret,
    /// Address that logs the user in once.
    pub(super) login: Option<&'a str>,
}

/// Makes the calls one after the other and prints each with its answer.
pub(super) async fn show(out: Output, ways: Ways<'_>, folder: &Path) -> Result<(), Failure> {
    let Ways { url, token, login } = ways;
    let credential = Credential::bearer(token)?;
    out.line(&format!("\nThis token is valid for 24 hours:\n\n  export TOKEN={}", token.expose()))?;
    let mut denied = None;
    for stop in &STOPS {
        let body = json!({ "input": (stop.input)() }).to_string();
        let path = format!("{url}/v1/mcps/{}/invoke", stop.tool);
        out.line(&format!(
            "\n{}\n\n  curl -s {path} \\\n    -H \"Authorization: Bearer $TOKEN\" \\\n    \
             -H 'Content-Type: application/json' -d '{body}'\n",
            stop.title
        ))?;
        let (status, answer) = probe::post(&path, &credential, body).await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let pretty = json_text(&serde_json::to_string_pretty(&answer)?).replace('\n', "\n  ");
        out.line(&format!("  HTTP {status}\n  {pretty}"))?;
        let governance = |name| answer.pointer(&format!("/governance/{name}"))?.as_str();
        if governance("decision") == Some("deny") {
            denied = governance("audit_event_id").map(str::to_owned);
        }
    }
    let config = folder.join("portcullis.toml");
    let config = config.display();
    if let Some(event) = denied {
        out.line(&format!(
            "\nThis says which condition of which policy denied a call:\n\n  \
             portcullis policy explain {event} --config {config}"
        ))?;
    }
    let policies = folder.join("policies");
    if let Some(login) = login {
        out.line(&format!(
            "\nLog in with a browser by this address, once, within five minutes:\n\n  {login}\n\n\
             `portcullis login-link --principal quickstart-user --url {url} \
             --config {config}` prints another."
        ))?;
    }
    out.line(&format!(
        "\nEvery call was recorded before and after it ran:\n\n  curl -s '{url}/v1/audit/events?type=mcp.invocation&limit=3' \
         -H \"Authorization: Bearer $TOKEN\"\n\n\
         Agents speak MCP to {url}/mcp with the same token; the settings of usual clients:\n\n  \
         portcullis client-config --url {url} --token-env TOKEN --client claude\n\n\
         Change the policies in {} while it runs; they hold within a second.\n\
         Serving until Ctrl-C.",
        policies.display()
    ))
}
