//! The effect of a call: its tool is called once, and the answer is decided about.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use portcullis_core::{
    audit::Governance,
    call::{Aim, Answer, CallResult},
    capability::{Capability, CapabilityKind, Definition},
    hidden::spelled,
    json::{Document, JsonValue, Node},
    mcp::{
        apps::{self, AppRules, UI},
        meta::META,
        skills,
    },
    refusal::{Executed, Refusal, UpstreamReason},
};
use portcullis_upstream::{
    CallAnswer, CallError, CallErrorKind, ServerWords, Trace, text::one_line,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Calls, dispatch::Dispatch, event::CallOutcome, remarks::Remark};
use crate::{
    catalogue::{not_found, provider::Misfits},
    request::attendance::Attendance,
    telemetry::{counters, stages::Stage},
};

impl Calls {
    /// Calls the tool, and decides about what comes back.
    pub(super) async fn perform(&self, dispatch: &Dispatch) -> CallOutcome {
        if !dispatch.approvals.is_empty() {
            Box::pin(self.approvals.consumed(&dispatch.ctx, &dispatch.approvals)).await;
        }
        let mut governance = dispatch.governance();
        let Dispatch { ctx, call, visible, .. } = dispatch;
        let connection = &visible.connection;
        let begun = self.enter_stage(ctx, Stage::Upstream);
        ctx.trace_call(&visible.tool, call.aim(), connection.server().network());
        let forms = connection.server().forms();
        let said = ServerWords::default();
        let state = ctx.origin.tracestate.as_deref();
        let trace = Trace {
            traceparent: ctx.origin.stages.parent().or(ctx.origin.traceparent),
            // It goes to the server, and DLP has not scanned it before.
            tracestate: state.filter(|text| self.screening.is_clean(text)),
            live: ctx.attendance.as_ref().map(Attendance::live),
            forms: forms.as_ref(),
            said: Some(&said),
            ..Trace::default()
        };
        let until = Instant::now() + connection.server().call_timeout();
        // Dropped at once, so that later steps use the same place in memory.
        let (answered, progress) = {
            let sent = pin!(self.providers.call_through(connection, call, None, trace));
            self.attended(dispatch, sent).await
        };
        let answered = self.awaited_task(dispatch, answered, until, &said).await;
        for ruling in &progress {
            ruling.add_to(&mut governance);
        }
        connection.provider.called(&answered, begun, self.base.clock.now());
        ctx.trace_answer(&answered);
        let fits = self.fits(dispatch, answered.as_ref()).await;
        let mut remarks = Remark::of(&visible.tool, answered.as_ref(), fits);
        let outcome = match answered {
            Err(error) => {
                connection.provider.record_failure();
                Box::pin(self.fail(dispatch, governance, &error, &said)).await
            }
            Ok(CallAnswer::Asked(interaction)) => {
                Box::pin(self.end_leg(dispatch, governance, *interaction)).await
            }
            Ok(CallAnswer::Task(told)) => {
                Box::pin(self.begin_task(dispatch, governance, *told)).await
            }
            Ok(CallAnswer::Result(mut result)) => {
                if narrow_pages(&mut result, connection.server().apps()) {
                    remarks.push(Remark::PageNarrowed);
                }
                self.decide_result(dispatch, governance, result, fits).await
            }
        };
        outcome.with_forms(forms.clone()).with_remarks(remarks)
    }

    /// The outcome of a call whose tool gave a result.
    pub(super) async fn decide_result(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        result: CallResult,
        fits: bool,
    ) -> CallOutcome {
        let declared = &dispatch.visible.connection.provider.declared;
        if !fits && declared.misfits == Misfits::Deny {
            let slug = declared.slug.clone();
            let refusal = Refusal::upstream(slug, UpstreamReason::OutputMismatch);
            return CallOutcome::of_refusal(governance, refusal, Executed::Yes);
        }
        let checked = match self.without_hidden(dispatch, result).await {
            Ok(result) => self.verified(dispatch, result).await,
            Err(refusal) => Err(refusal),
        };
        let result = match checked {
            Ok(result) => result,
            Err(refusal) => return CallOutcome::of_refusal(governance, refusal, Executed::Yes),
        };
        let is_of_pages = is_of_pages(dispatch, &result);
        let answer = dispatch.answer(result);
        let answer = if is_of_pages { answer.of_pages() } else { answer };
        match self.judge_answer(dispatch, answer).await {
            Ok(answer) => {
                let tool = &dispatch.visible.tool;
                self.follow_answer(&dispatch.ctx, tool, answer.ruling());
                answer.ruling().add_to(&mut governance);
                let (result, is_error, ruling) = answer.into_parts();
                CallOutcome::of_result(governance, result, is_error).with_ruling(ruling)
            }
            Err(denial) => self.withhold(dispatch, governance, denial),
        }
    }

    /// The result of a completion without values of a template that name what the caller may not read, and without their
    /// number.
    async fn without_hidden(
        &self,
        dispatch: &Dispatch,
        mut result: CallResult,
    ) -> Result<CallResult, Refusal> {
        let Some(completion) = dispatch.call.completion() else { return Ok(result) };
        if dispatch.visible.tool.template().is_none() {
            return Ok(result);
        }
        let (variable, values) = (completion.argument.to_owned(), texts_of(completion.values));
        for (_, told) in result.more.iter_mut().filter(|(name, _)| name == COMPLETION) {
            let Value::Object(mut kept) = told.root().to_value() else { continue };
            kept.remove("total");
            let suggested = kept.remove("values").unwrap_or_default();
            let (tools, ctx) = (Arc::clone(&self.tools), dispatch.ctx.clone());
            let visible = dispatch.visible.clone();
            let (variable, values) = (variable.clone(), values.clone());
            let filter = move || {
                let all = suggested.as_array().into_iter().flatten().filter_map(Value::as_str);
                let may = |it: &&str| tools.may_suggest(&ctx, &visible, &values, &variable, it);
                all.filter(may).map(str::to_owned).collect::<Vec<_>>()
            };
            // Each value may be held against many templates and policies.
            let org = dispatch.ctx.caller().org_id;
            let left = self.base.worked(org, usize::MAX, filter).await?;
            kept.insert("values".to_owned(), json!(left));
            *told = Document::of(&Value::Object(kept));
        }
        Ok(result)
    }

    /// The file or the entry of a skill. Rejects one that is not as the accepted manifest says.
    async fn verified(
        &self,
        dispatch: &Dispatch,
        result: CallResult,
    ) -> Result<CallResult, Refusal> {
        let skill = Arc::clone(&dispatch.visible.tool);
        if skill.id.kind() != CapabilityKind::Skill {
            return Ok(result);
        }
        let describes = *dispatch.call.aim() == Aim::Describe;
        let uri = dispatch.call.input().get("uri").and_then(JsonValue::text);
        let uri = uri.unwrap_or_default().to_owned();
        let told = result.more.iter().find(|(name, _)| name == CONTENTS || name == SKILL);
        let told = told.map(|(_, told)| told.clone()).unwrap_or_default();
        let bytes = told.root().raw().len();
        let check = move || {
            let (id, accepted) = (skill.id.name(), &skill.definition);
            if !describes {
                return skills::check_file(id, &accepted.more, &uri, told.root()).is_ok();
            }
            let is_its = told.root().get("uri").and_then(Node::text) == Some(id);
            let entry = told.root().to_value();
            let entry = entry.as_object().and_then(|it| skills::of_entry(id, it, true).ok());
            let entry = entry.map(|more| Definition::skill(accepted.name.clone(), more));
            is_its && entry.is_some_and(|it| it == *accepted || it.is_rearrangement_of(accepted))
        };
        if self.base.worked(dispatch.ctx.caller().org_id, bytes, check).await? {
            return Ok(of_skill(&dispatch.visible.tool, result));
        }
        let slug = dispatch.visible.connection.provider.declared.slug.clone();
        Err(Refusal::upstream(slug, UpstreamReason::DigestMismatch))
    }

    /// Returns false for a result that does not fit the output schema of its tool, where the provider
    /// is to be held to it. Failures of a tool have no structured content.
    pub(super) async fn fits(
        &self,
        dispatch: &Dispatch,
        answered: Result<&CallAnswer, &CallError>,
    ) -> bool {
        let declared = &dispatch.visible.connection.provider.declared;
        let tool = &dispatch.visible.tool;
        let Ok(CallAnswer::Result(CallResult { structured, is_error: false, .. })) = answered
        else {
            return true;
        };
        if declared.misfits == Misfits::Ignore || !tool.declares_output() {
            return true;
        }
        let tool = Arc::clone(tool);
        let structured = structured.clone();
        let bytes = structured.as_ref().map_or(0, |it| it.root().raw().len());
        let check = move || tool.fits_output(structured.as_ref().map(Document::root));
        let fits =
            self.base.worked(dispatch.ctx.caller().org_id, bytes, check).await.unwrap_or(false);
        if !fits {
            counters::output_mismatched(declared.slug.as_str());
        }
        fits
    }

    /// The end of a call without an answer. What its server said instead goes to the caller and into the
    /// log, if it may leave as the text of a result could.
    pub(super) async fn fail(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        error: &CallError,
        said: &ServerWords,
    ) -> CallOutcome {
        let connection = &dispatch.visible.connection;
        let mut refusal = if error.kind == CallErrorKind::NotFound {
            let uri = dispatch.call.input().get("uri").and_then(JsonValue::text);
            let id = format!("{}:{}", connection.slug(), uri.unwrap_or_default());
            not_found(dispatch.visible.tool.id.kind(), &id)
        } else {
            connection.refusal(error)
        };
        if let (Refusal::UpstreamError { said: told, .. }, Some(text)) = (&mut refusal, said.text())
        {
            let text = connection.server().without_credentials(text);
            *told = self.cleared(dispatch, &mut governance, text).await;
            if let Some(text) = told {
                let tool = &dispatch.visible.tool.id;
                let request = dispatch.ctx.origin.request_id;
                let line = one_line(text, text.len());
                tracing::info!(%tool, %request, "the server of a tool answered with an error: {line}");
            }
        }
        CallOutcome::of_refusal(governance, refusal, error.executed)
    }

    /// A text of the server as far as it may leave; `None` if it may not.
    async fn cleared(
        &self,
        dispatch: &Dispatch,
        governance: &mut Governance,
        text: String,
    ) -> Option<String> {
        let content = Some(Document::of(&json!([{"type": "text", "text": text}])));
        let answer = Answer::mcp(CallResult { content, is_error: true, ..CallResult::default() });
        let (result, _, ruling) = self.judge_answer(dispatch, answer).await.ok()?.into_parts();
        ruling.add_to(governance);
        let result = result.root().to_value();
        let text = result.pointer("/content/0/text").and_then(Value::as_str)?;
        Some(spelled(text).into_owned())
    }
}

/// The answer about a skill with nothing that was not checked: its entry as it was accepted, or the file alone.
fn of_skill(skill: &Capability, mut result: CallResult) -> CallResult {
    result.more.retain(|(name, _)| name != META);
    for (name, told) in &mut result.more {
        if name == SKILL {
            let entry = skills::entry(&skill.definition.more, str::to_owned);
            let members = [("uri", json!(skill.id.name()))].into_iter().chain(entry);
            let entry = members.map(|(name, value)| (name.to_owned(), value)).collect();
            *told = Document::of(&Value::Object(entry));
        }
        let is_checked = |name: &str| ["uri", "mimeType", "text", "blob"].contains(&name);
        let is_more = |part: Node<'_>| {
            part.members().into_iter().flatten().any(|(name, _)| !is_checked(name))
        };
        if name == CONTENTS && told.root().items().into_iter().flatten().any(is_more) {
            let mut parts = told.root().to_value();
            for part in parts.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
            {
                part.retain(|name, _| is_checked(name));
            }
            *told = Document::of(&parts);
        }
    }
    result
}

/// Cuts what pages of apps ask for in a read to what the rules permit; without rules to nothing. Returns true if anything
/// was cut.
fn narrow_pages(result: &mut CallResult, rules: Option<&AppRules>) -> bool {
    let mut is_cut = false;
    for (_, told) in result.more.iter_mut().filter(|(name, _)| name == CONTENTS) {
        if !apps::has_rights(told.root()) {
            continue;
        }
        let mut contents = told.root().to_value();
        for part in contents.as_array_mut().into_iter().flatten() {
            is_cut |= narrow_page(part, rules);
        }
        *told = Document::of(&contents);
    }
    is_cut
}

/// The same of one content: of a page its `ui` stays, and no other member in which hosts look for rights.
fn narrow_page(part: &mut Value, rules: Option<&AppRules>) -> bool {
    let is_page = part.get("uri").and_then(Value::as_str).is_some_and(apps::is_page);
    let asked = part.get(META).and_then(|meta| meta.get(UI)).filter(|_| is_page).cloned();
    if let (Some(Value::Object(meta)), Some(_)) = (part.get_mut(META), &asked) {
        meta.remove(UI);
        if meta.is_empty() {
            part.as_object_mut().map(|members| members.remove(META));
        }
    }
    let is_cut = apps::remove_rights(part);
    let Some(asked) = asked else { return is_cut };
    let Some((held, less)) = rules.map(|rules| rules.narrow(&asked)) else { return true };
    if let Value::Object(members) = part {
        members.insert(META.to_owned(), json!({ (UI): held }));
    }
    is_cut || less
}

/// Returns true for the read of a page of an app, where such pages pass, by a client that says that it shows them, if it
/// gives pages and nothing else.
fn is_of_pages(dispatch: &Dispatch, result: &CallResult) -> bool {
    let uri = dispatch.call.input().get("uri").and_then(JsonValue::text);
    let is_read = dispatch.visible.tool.id.kind() == CapabilityKind::Resource
        && uri.is_some_and(apps::is_page)
        && dispatch.visible.connection.server().apps().is_some()
        && dispatch.call.round().capabilities.ui;
    let is_page =
        |part: Node<'_>| part.get("mimeType").and_then(Node::text) == Some(apps::MEDIA_TYPE);
    let told = result.more.iter().filter(|(name, _)| name == CONTENTS);
    is_read && told.filter_map(|(_, told)| told.root().items()).flatten().all(is_page)
}

/// Member of the answer to a completion.
const COMPLETION: &str = "completion";
/// Member of the answer to a read.
const CONTENTS: &str = "contents";
/// Member of the answer to a request for a skill.
const SKILL: &str = "skill";

/// The members of an object that are texts.
fn texts_of(values: Node<'_>) -> BTreeMap<String, String> {
    let members = values.members().into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned()))).collect()
}
