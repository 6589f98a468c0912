//! The audit log: its signed checkpoint, exports of it, holds on it, and how to verify it.

use axum::{
    extract::{Path, RawQuery},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use portcullis_core::principal::Scope;
use serde_json::{Value, json};

use super::{
    PageResult,
    api::Problem,
    form::{Choices, FormState},
    json::Json,
    render, see_other,
    signed_in::{Guest, GuestForm},
    table::Filters,
};
use crate::{
    exchange::{NoQuery, Outcome, Segment, WithQuery},
    pages::form::Form,
    v1,
};

const PATH: &str = "/console/log";
const FORMATS: Choices = &[
    ("jsonl", "jsonl, can be verified"),
    ("csv", "csv"),
    ("csv+bom", "csv for Excel"),
    ("ocsf", "ocsf"),
];
/// Exports that the page lists.
const LISTED: usize = 8;

page! { LogPage = "log.html";
    checkpoint: Result<SignedCheckpoint, Problem>,
    /// The newest events.
    events: Vec<Json>,
    /// Number of them that have no place in the log yet.
    unsealed: usize,
    /// Verifier keys of the log.
    keys: Vec<String>, may_export: bool, exports: Vec<ListedExport>, is_writing: bool,
    /// Holds in force; nothing for people who are no admins.
    holds: Option<Vec<Json>>, form: FormState,
}

/// A signed note, taken apart.
pub(super) struct SignedCheckpoint {
    note: String,
    origin: String,
    pub(super) size: String,
    root: String,
    signers: Vec<String>,
}

/// An export by its id, as it stands or without a file.
struct ListedExport {
    id: String,
    state: Option<Json>,
    event: Option<Json>,
}

impl SignedCheckpoint {
    fn of(note: &str) -> Self {
        let mut lines = note.lines();
        let mut line = || lines.next().unwrap_or_default().to_owned();
        let [origin, size, root] = [line(), line(), line()];
        let signer =
            |line: &str| line.strip_prefix("\u{2014} ")?.split(' ').next().map(str::to_owned);
        let signers = note.lines().filter_map(signer).collect();
        Self { note: note.to_owned(), origin, size, root, signers }
    }

    /// Returns true if the signer is a witness rather than the log itself.
    fn is_witness(&self, signer: &str) -> bool {
        signer != self.origin
    }
}

/// The log: its checkpoint, its exports and holds, and a check that it continues what was seen.
pub(crate) async fn show(guest: Guest, filters: Filters) -> PageResult {
    page(&guest, filters.text("export"), FormState::default()).await
}

async fn page(guest: &Guest, first: &str, form: FormState) -> PageResult {
    guest.require(Scope::AuditRead)?;
    // Read before the checkpoint, which gives every event a place.
    let events = guest.log_events("limit=20").await;
    let unsealed = events.iter().filter(|event| !event.has("/sequence")).count();
    let checkpoint = guest.checkpoint().await;
    let exports = guest.exports(first).await;
    let is_pending =
        |it: &ListedExport| it.state.as_ref().is_some_and(|it| it.is("/status", "pending"));
    let page = LogPage {
        frame: guest.frame("Log", PATH),
        checkpoint,
        unsealed,
        events,
        keys: guest.log_keys(),
        may_export: guest.may(Scope::AuditExport),
        is_writing: exports.iter().any(is_pending),
        exports,
        holds: guest.holds().await,
        form,
    };
    Ok(render(StatusCode::OK, &page))
}

impl Guest {
    async fn log_events(&self, filters: &str) -> Vec<Json> {
        self.items(None, filters, v1::events::list).await
    }

    /// The checkpoint that is signed now.
    pub(super) async fn checkpoint(&self) -> Result<SignedCheckpoint, Problem> {
        let signed = async |NoQuery(ctx, gateway)| {
            Ok(Outcome::data(&gateway.app.audit.checkpoint(&ctx).await?))
        };
        let reply = self.ask(Some(Scope::AuditRead), signed).await?;
        // The text as it was signed: nothing in it is spelled out.
        Ok(SignedCheckpoint::of(reply.data.0.as_str().unwrap_or_default()))
    }

    /// Verifier keys of the log.
    pub(super) fn log_keys(&self) -> Vec<String> {
        let keys = self.gateway.app.audit.log_keys(self.ctx.caller().org_id).unwrap_or_default();
        keys.iter().map(|key| key.verifier.to_string()).collect()
    }

    async fn holds(&self) -> Option<Vec<Json>> {
        let holds = self.read(Some(Scope::Admin), None, v1::holds::list).await.ok()?.items();
        Some(holds.into_iter().filter(|hold| !hold.has("/released_at")).collect())
    }

    async fn export(&self, id: String, event: Option<Json>) -> ListedExport {
        let path = Ok(Path(id.clone()));
        let get = |caller| v1::exports::get(caller, path);
        let state = self.ask(Some(Scope::AuditExport), get).await.ok().map(|reply| reply.data);
        ListedExport { id, state, event }
    }

    /// The exports that the log tells of, and `first` before them: no event tells of one that is
    /// being written.
    async fn exports(&self, first: &str) -> Vec<ListedExport> {
        let known = self.log_events(&format!("type=audit.exported&limit={LISTED}")).await;
        let mut listed = Vec::new();
        if !first.is_empty() && !known.iter().any(|event| event.is("/target/id", first)) {
            let begun = self.export(first.to_owned(), None).await;
            listed.extend(begun.state.is_some().then_some(begun));
        }
        for event in known {
            listed.push(self.export(event.text("/target/id"), Some(event)).await);
        }
        listed
    }
}

/// Begins an export of the log, from the form of its page.
pub(crate) async fn export(GuestForm(guest, form): GuestForm) -> PageResult {
    let body = guest.json_body(&export_request(&form));
    match guest.ask(Some(Scope::AuditExport), |caller| v1::exports::create(caller, body)).await {
        Ok(reply) => Ok(see_other(&format!("{PATH}?export={}", reply.data.text("/id")))),
        Err(problem) => page(&guest, "", FormState::refused(&form, Some(problem))).await,
    }
}

/// The body that a program would send.
fn export_request(form: &Form) -> Value {
    let mut members = form.texts(&["format", "from", "to"]);
    if members.get("format").is_some_and(|format| format == "csv+bom") {
        members
            .extend([("format".to_owned(), json!("csv")), ("include".to_owned(), json!(["bom"]))]);
    }
    for name in ["from", "to"] {
        let Some(Value::String(moment)) = members.get_mut(name) else { continue };
        // What browsers send for a moment without and with seconds.
        match moment.len() {
            16 => moment.push_str(":00Z"),
            19 => moment.push('Z'),
            _ => {}
        }
    }
    Value::Object(members)
}

/// The file of an export.
#[utoipa::path(
    get, path = "/console/log/exports/{id}/file", tag = "console", operation_id = "console_export_file",
    params(("id" = String, Path, description = "`exp_` and a ULID")),
    responses(
        (status = 200, description = "the file", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 206, description = "the part asked for with `Range`", content((String = "application/x-ndjson"), (String = "text/csv"))),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "the person lacks `audit:export`", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "no such file in this org, not yet, or not any more", body = crate::exchange::ErrorAnswer),
        (status = 416, description = "the part is not in the file", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn file(
    guest: Guest,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Outcome> {
    guest.ctx.require(Scope::AuditExport)?;
    v1::exports::file(guest.caller(), path, headers).await
}

/// The checkpoint with the proof that it continues an older one, for the script of the page.
#[utoipa::path(
    get, path = "/console/log/checkpoint", tag = "console", operation_id = "console_checkpoint",
    params(("since" = Option<u64>, Query, description = "size of a tree seen before")),
    responses(
        (status = 200, description = "the answer of `GET /v1/audit/checkpoint`", content((String = "text/plain"), (Object = "application/json"))),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 400, description = "`since` is no size, or larger than the log", body = crate::exchange::ErrorAnswer),
        (status = 403, description = "the person lacks `audit:read`", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn checkpoint(guest: Guest, RawQuery(raw): RawQuery) -> Result<Response, Outcome> {
    guest.ctx.require(Scope::AuditRead)?;
    v1::checkpoint::get(WithQuery(guest.ctx, guest.gateway, raw)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_browsers_are_those_of_the_api() {
        for (form, expected) in [
            (
                Form::of([
                    ("from", "2026-11-01T00:00"),
                    ("to", "2026-12-01T00:00:30"),
                    ("format", ""),
                ]),
                json!({"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:30Z"}),
            ),
            (
                Form::of([("form_token", "x"), ("from", "yesterday"), ("format", "csv")]),
                json!({"from": "yesterday", "format": "csv"}),
            ),
            (Form::of([("format", "csv+bom")]), json!({"format": "csv", "include": ["bom"]})),
        ] {
            assert_eq!(export_request(&form), expected);
        }
    }

    #[test]
    fn a_checkpoint_names_its_signers_and_which_are_witnesses() {
        let note = "host/audit/org_x\n7\ncm9vdA==\n\n\u{2014} host/audit/org_x AAAA\n\u{2014} witness.example/w1 BBBB\n";

        let signed = SignedCheckpoint::of(note);

        assert_eq!(
            (&*signed.origin, &*signed.size, &*signed.root),
            ("host/audit/org_x", "7", "cm9vdA==")
        );
        assert_eq!(signed.signers, ["host/audit/org_x", "witness.example/w1"]);
        assert!(!signed.is_witness("host/audit/org_x") && signed.is_witness("witness.example/w1"));
    }
}
