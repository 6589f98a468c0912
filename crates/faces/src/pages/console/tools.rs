//! Capabilities: which tools, prompts, resources and skills there are, and one of them with a form to try it.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::Response,
};
use portcullis_core::{capability::CapabilityKind, principal::Scope, refusal::Refusal};

use super::{
    CSP_OF_PICTURES, PageResult,
    api::{ApiReply, Problem},
    capability::{Capability, PATH, pages_of},
    form::Choices,
    json::{self, Json},
    plot::sparkline_of_list,
    reader::Reading,
    render, schema,
    schema_form::{self, FormValues},
    signed_in::{Guest, GuestForm},
    table::Filters,
    trial::Trial,
};
use crate::{
    exchange::{Segment, segment},
    pages::{form::Form, html::Html},
    v1,
};

const ACCESSES: Choices =
    &[("", "any"), ("allow", "allow"), ("conditional", "conditional"), ("deny", "deny")];
const KINDS: Choices = &[
    ("", "tools"),
    ("prompt", "prompts"),
    ("resource", "resources and templates"),
    ("skill", "skills"),
];

page! { ToolsPage = "tools.html";
    filters: Filters, kind: CapabilityKind,
    /// Begin of the addresses of their pages.
    pages: String,
    /// The entries of the list, each with its calls of a day.
    tools: Vec<(Json, Html)>,
    /// True if the person may see how often they are called.
    may_count: bool, more: Html, left_out: Vec<Json>,
}

/// The list of a kind, tools unless another one is chosen, with the filters of the API, and what was left out.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let kind = listed_kind(&filters).map_err(|refusal| Problem::of(refusal).page(&guest))?;
    let reply = guest.list_kind(kind, &filters).await?;
    let left_out = guest.items(Some(Scope::McpsRead), "", v1::mcps::left_out).await;
    let more = reply.more(PATH, &filters, "More");
    let frame = guest.frame("Capabilities", PATH);
    // Ids of resources may have commas, which part the ids that counts are asked for.
    let has_counts = matches!(kind, CapabilityKind::Tool | CapabilityKind::Prompt);
    let may_count = has_counts && guest.may(Scope::AuditRead);
    let tools = guest.with_calls(kind, reply.items(), may_count).await;
    let pages = pages_of(kind);
    let page = ToolsPage { frame, filters, kind, pages, tools, may_count, more, left_out };
    Ok(render(StatusCode::OK, &page))
}

fn listed_kind(filters: &Filters) -> Result<CapabilityKind, Refusal> {
    let word = filters.text("kind");
    let is_listed = KINDS.iter().any(|(kind, _)| *kind == word) || word == "tool";
    let kind = CapabilityKind::from_word(if word.is_empty() { "tool" } else { word });
    kind.filter(|_| is_listed).ok_or_else(|| {
        let message = "`kind` has to be `tool`, `prompt`, `resource` or `skill`.";
        Refusal::bad_parameter("kind", message)
    })
}

/// Words of a page about its kind.
#[derive(Debug)]
struct Words {
    heading: &'static str,
    /// A use, and the button that makes it.
    act: &'static str,
    verb: &'static str,
    /// Headings of schemas, each with the place of its schema.
    schemas: [(&'static str, &'static str); 2],
}

impl Words {
    const fn of(kind: CapabilityKind) -> Self {
        let [heading, act, verb, fields] = match kind {
            CapabilityKind::Tool => ["Try it", "call", "Call", "Input"],
            CapabilityKind::Prompt => ["Try it", "call", "Get", "Arguments"],
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                ["Read", "read", "Read", "Variables"]
            }
        };
        let schemas = [(fields, "/input_schema"), ("Output", "/output_schema")];
        Self { heading, act, verb, schemas }
    }
}

page! { ToolPage<'a> = "tool.html";
    kind: CapabilityKind, words: Words,
    /// The whole id, and the one without the kind.
    id: String, short: String, tool: Json,
    /// The address that the form is sent to, and the begin of those of a skill's files.
    action: String, files: String, fields: Html, may_call: bool, may_read_policies: bool,
    trial: Option<Trial<'a>>,
    /// The result of the trial.
    answer: Html,
    /// The connection that the call lacks, if the person may make it.
    connection: Option<Json>,
    /// The input as JSON, as it was sent or as an empty one.
    raw: String,
}

/// One capability: its definition as accepted, who may use it, and a form to try it.
pub(crate) async fn show(guest: Guest, path: Segment) -> PageResult {
    let capability = find(&guest, &segment(path)).await?;
    Ok(page(&guest, capability, None).await)
}

/// Uses a capability as the person, from the form of its page: a governed call like any other.
pub(crate) async fn call(path: Segment, GuestForm(guest, form): GuestForm) -> PageResult {
    call_from(&guest.whole().await?, &segment(path), &form).await
}

/// Uses a capability with the input of a form that was checked, and shows what came of it.
pub(super) async fn call_from(guest: &Guest, id: &str, form: &Form) -> PageResult {
    let capability = find(guest, id).await?;
    let trial = Trial::run(guest, &capability, form).await;
    Ok(page(guest, capability, Some(trial)).await)
}

async fn find(guest: &Guest, id: &str) -> Result<Capability, Response> {
    Capability::find(guest, id).await.map_err(|problem| problem.page(guest))
}

async fn page(guest: &Guest, capability: Capability, trial: Option<Trial<'_>>) -> Response {
    let sent = trial.as_ref().and_then(Trial::input);
    // Fields that are no input yet come back as they were sent.
    let unread = trial.as_ref().and_then(|trial| trial.unread);
    let filled = unread.map_or(FormValues::By(sent.as_ref()), FormValues::As);
    let raw = trial.as_ref().map_or_else(|| capability.empty_input(), |trial| trial.raw.clone());
    let problem = trial.as_ref().and_then(|trial| trial.result.as_ref().err());
    let connection = match problem.filter(|problem| problem.details.has("/connect")) {
        Some(problem) => guest.missing_connection(problem).await,
        None => None,
    };
    let kind = capability.id.kind();
    let result = trial.as_ref().and_then(|trial| trial.result.as_ref().ok());
    let reading = result.map(|result| Reading::of(kind, result));
    let has_pictures = reading.as_ref().is_some_and(|it| it.has_pictures);
    let id = Json(capability.id.as_str().into()).text("");
    let page = ToolPage {
        frame: guest.frame(&*id, PATH),
        kind,
        words: Words::of(kind),
        short: Json(capability.id.short().into()).text(""),
        id,
        action: capability.page(),
        files: format!("{}{}%3A", pages_of(CapabilityKind::Resource), capability.id.provider()),
        fields: schema_form::fields(&capability.view.at("/input_schema").0, filled),
        may_call: guest.may(Scope::McpsInvoke),
        may_read_policies: guest.may(Scope::PoliciesRead),
        connection,
        tool: capability.view,
        answer: reading.map(|it| it.html).unwrap_or_default(),
        trial,
        raw,
    };
    let mut response = render(StatusCode::OK, &page);
    if has_pictures {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, CSP_OF_PICTURES);
    }
    response
}

impl Guest {
    /// The list of a kind under the filters of its page, by the operation of the API that filters it.
    async fn list_kind(
        &self,
        kind: CapabilityKind,
        filters: &Filters,
    ) -> Result<ApiReply, Response> {
        let scope = Some(Scope::McpsRead);
        let of_tools = filters.without("kind");
        // Of the other kinds the API lists only what may be used.
        let of_others = of_tools.without("access");
        match kind {
            CapabilityKind::Tool => self.list(scope, &of_tools, v1::mcps::list).await,
            CapabilityKind::Prompt => self.list(scope, &of_others, v1::prompts::list).await,
            CapabilityKind::Skill => self.list(scope, &of_others, v1::skills::list).await,
            CapabilityKind::Resource | CapabilityKind::Template => {
                self.list(scope, &of_others, v1::resources::list).await
            }
        }
    }

    /// Entries of a list, with their calls for people who may read the log.
    async fn with_calls(
        &self,
        kind: CapabilityKind,
        tools: Vec<Json>,
        may_count: bool,
    ) -> Vec<(Json, Html)> {
        if !may_count {
            return tools.into_iter().map(|tool| (tool, Html::default())).collect();
        }
        let id = |tool: &Json| format!("{}{}", kind.prefix(), tool.text("/id"));
        let ids: Vec<String> = tools.iter().map(id).collect();
        let query = Filters::of("tools", &ids.join(",")).query().unwrap_or_default();
        let counts = self.items(Some(Scope::AuditRead), &query, v1::counts::by_tool).await;
        let mut counts = counts.into_iter();
        let with_calls = |tool: Json| {
            let calls = counts.next();
            let calls = calls.map(|it| sparkline_of_list(&it.at("/calls"), "Calls of a day"));
            (tool, calls.unwrap_or_default())
        };
        tools.into_iter().map(with_calls).collect()
    }

    /// The connection that a refused call lacks; `None` if the person may not make it.
    async fn missing_connection(&self, problem: &Problem) -> Option<Json> {
        let id = Ok(Path(problem.details.text("/provider_id")));
        let read = |caller| v1::providers::get(caller, id);
        let provider = self.ask(Some(Scope::ProvidersRead), read).await.ok()?.data;
        let of_org = provider.is("/owner/type", "org");
        let may_connect = self.may(Scope::ProvidersWrite) && (!of_org || self.may(Scope::Admin));
        may_connect.then_some(provider)
    }
}
