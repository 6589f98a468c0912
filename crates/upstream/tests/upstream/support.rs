//! Shared by the tests.

use std::{path::PathBuf, sync::Arc, time::Duration};

use portcullis_core::{
    call::{Asker, CallResult, Cleared, Limiter, PinState, Use},
    capability::{Capability, Definition},
    clock::Timestamp,
    dlp::{Engine, FingerprintKey, Settings, Subject},
    json::Document,
    policy::{Catalogue, Full, PolicyFile, PolicySet, Principal, Rate},
    principal::{AuthMethod, Caller, Plan, Role, ScopeSet},
    random::Random,
    refusal::{Executed, UpstreamReason},
};
use portcullis_upstream::{
    CallAnswer, CallError, CallErrorKind, FormTally, Outbound, Program, Server, ServerSettings,
    Trace, Transport,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A source of bytes that are all the same.
#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

pub(crate) fn outbound() -> Outbound {
    Outbound::new(Arc::new(Fixed))
}

/// Settings with times that suit tests: long enough for a busy machine.
pub(crate) fn settings(transport: Transport) -> ServerSettings {
    let slug = "hostile".parse().unwrap();
    let timeout = Duration::from_secs(20);
    ServerSettings {
        call_timeout: timeout,
        max_response_bytes: 50_000,
        ..ServerSettings::new(slug, transport)
    }
}

pub(crate) fn server(settings: ServerSettings) -> Server {
    Server::new(settings, &outbound()).unwrap()
}

/// The badly behaved child.
pub(crate) fn hostile(args: &[&str]) -> Transport {
    Transport::Stdio(Program::new(env!("CARGO_BIN_EXE_portcullis-hostile-mcp"), args))
}

/// The file in which a badly behaved child keeps its diary.
pub(crate) struct Diary(TempDir);

impl Diary {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("diary")
    }

    /// A child that behaves like this and writes in it.
    pub(crate) fn child(&self, era: &str, behaviour: &str) -> Transport {
        hostile(&[era, behaviour, self.file().to_str().unwrap()])
    }

    /// The lines, each with the process that wrote it.
    pub(crate) fn lines(&self) -> Vec<(i32, String)> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        let lines = text.lines().map(|line| line.split_once(' ').unwrap());
        lines.map(|(process, line)| (process.parse().unwrap(), line.to_owned())).collect()
    }

    /// The processes of the lines that say this.
    pub(crate) fn of(&self, line: &str) -> Vec<i32> {
        let lines = self.lines().into_iter().filter(|(_, its)| its == line);
        lines.map(|(process, _)| process).collect()
    }
}

/// Returns true if it is dead. Its adoptive parent has to reap it; until then it is still listed.
pub(crate) fn has_ended(process: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.is_empty() || state.contains(") Z ") || state.contains(") X ")
}

pub(crate) async fn call(server: &Server, arguments: Value) -> Result<CallAnswer, CallError> {
    call_tool(server, "act", arguments).await
}

pub(crate) async fn call_tool(
    server: &Server,
    name: &str,
    arguments: Value,
) -> Result<CallAnswer, CallError> {
    server.call(caller().org_id, &cleared(name, arguments), None, Trace::default()).await
}

/// A call by the tools that this process or session listed.
pub(crate) async fn call_by(server: &Server, peer: u64) -> Result<CallAnswer, CallError> {
    let trace = Trace { peer: Some(peer), ..Trace::default() };
    server.call(caller().org_id, &cleared("act", json!({})), None, trace).await
}

/// A call during which forms of the server are answered.
pub(crate) async fn call_with_forms(
    server: &Server,
    arguments: Value,
    forms: &FormTally,
) -> Result<CallAnswer, CallError> {
    let trace = Trace { forms: Some(forms), ..Trace::default() };
    server.call(caller().org_id, &cleared("act", arguments), None, trace).await
}

/// A form with one property, which has to be answered.
pub(crate) fn form(property: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
    json!({"message": "Which one?", "requestedSchema": schema})
}

/// A call that went through DLP and a policy that permits everything.
#[expect(clippy::needless_pass_by_value, reason = "arguments are written in place")]
fn cleared(name: &str, arguments: Value) -> Cleared<Use> {
    let slug = "hostile".parse().unwrap();
    let definition = Definition::new(name.parse().unwrap(), json!({"type": "object"}));
    let tool = Arc::new(Capability::new(&slug, definition, Timestamp::default()).unwrap());
    let catalogue = Catalogue::new([(slug, Some(vec![Arc::clone(&tool)]))]);
    let text = "@id(\"all\") permit (principal, action, resource);".to_owned();
    let file = PolicyFile { path: "all.cedar".to_owned(), text };
    let set = PolicySet::load(vec![file], &catalogue, &[], Timestamp::default()).unwrap();
    let engine = Engine::new(&Settings::default()).unwrap();
    let time = Timestamp::default();
    let principal = Principal::of(&caller());
    let capture = portcullis_core::audit::Capture::Commit;
    let asker = Asker { principal: &principal, time, source_ip: None, capture };
    let call = Use::new(&engine, tool, PinState::Accepted, Document::of(&arguments), 0).unwrap();
    let subject = Subject::of(FingerprintKey::new([7; 32]));
    let scanned = call.scan(&engine, &subject).unwrap();
    scanned.decide(&set, &engine, asker).unwrap().fulfil(&engine, &Unlimited).unwrap()
}

struct Unlimited;

impl Limiter for Unlimited {
    fn take(&self, _: &str, _: Rate) -> Result<(), Full> {
        Ok(())
    }

    fn give_back(&self, _: &str, _: Rate) {}
}

fn caller() -> Caller {
    let id = "01M754BKTKX1YB8Q05NMW9TP4G";
    Caller {
        org_id: format!("org_{id}").parse().unwrap(),
        plan: Plan::Free,
        principal_id: format!("usr_{id}").parse().unwrap(),
        principal_name: "tester".to_owned(),
        role: Role::Admin,
        via: None,
        token_id: format!("tok_{id}").parse().ok(),
        label: None,
        scopes: ScopeSet::ALL,
        method: AuthMethod::Operator,
        allowed_from: None,
        lineage: Arc::default(),
        client: None,
        is_operator: false,
    }
}

/// The text of an answer's only block.
pub(crate) fn text(answer: &CallAnswer) -> String {
    let content = result(answer).content.as_ref().unwrap().root().to_value();
    content[0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn result(answer: &CallAnswer) -> &CallResult {
    match answer {
        CallAnswer::Result(result) => result,
        CallAnswer::Asked(_) | CallAnswer::Task(_) => panic!("it asks"),
    }
}

/// The structured content of an answer.
pub(crate) fn structured(answer: &CallAnswer) -> Value {
    result(answer).structured.as_ref().map(|it| it.root().to_value()).unwrap_or_default()
}

/// The failure of a call with empty arguments, in words.
pub(crate) async fn failure(server: &Server) -> (CallErrorKind, Executed) {
    let error = call(server, json!({})).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    (error.kind, error.executed)
}

pub(crate) const fn upstream(reason: UpstreamReason) -> CallErrorKind {
    CallErrorKind::Upstream(reason)
}
