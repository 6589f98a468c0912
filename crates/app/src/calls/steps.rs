//! The steps of a call before it is dispatched: its request is parsed and admitted, its tool read
//! again, judged and connected.

use portcullis_core::{
    audit::Target,
    call::{Aim, Cleared, Denial, Use},
    capability::{CapabilityId, CapabilityKind},
    json::{Document, JsonValue, Node},
    mcp::Method,
    policy::PolicySet,
    principal::Scope,
    refusal::Refusal,
};
use portcullis_store::Cost;

use super::{
    Calls, Invocation, View, conversation::Conversation, event::CallEvent, idempotency::KeyMeaning,
    reject::Rejection,
};
use crate::{
    base::{
        admission::{Admission, HaltedCall},
        claim::Claim,
    },
    catalogue::Visible,
    policies::{limits::uncounted, notices::Verdict, rates::Uncounted},
    providers::tools::parse_id,
    request::{Ctx, dlp::Dlp},
    telemetry::stages::Stage,
};

/// A call of a tool that the caller sees.
pub(super) struct ParsedCall {
    pub(super) visible: Visible,
    pub(super) view: View,
    pub(super) claim: Option<Claim>,
    pub(super) input: Document,
    pub(super) aim: Aim,
    pub(super) bytes: u64,
    pub(super) conversation: Conversation,
    /// The request about the task as which the call goes on, if it is one.
    pub(super) about: Option<Method>,
}

impl Calls {
    /// Reads the request: scope, key, body, visible tool.
    pub(super) fn parse(
        &self,
        ctx: &Ctx,
        invocation: Invocation,
        event: &mut CallEvent,
    ) -> Result<ParsedCall, Refusal> {
        self.enter_stage(ctx, Stage::Validate);
        event.set_target(self.target_of(invocation.tool.as_ref().ok()));
        ctx.require(Scope::McpsInvoke).map_err(|_| {
            let denial = Denial::unscoped(Scope::McpsInvoke);
            denial.policy().into_iter().for_each(|policy| self.tally_outright(ctx, policy));
            event.deny(&denial, self.policies.current_of(ctx.caller().org_id).version())
        })?;
        let key = invocation.key?;
        event.set_idempotent(key.is_some() || invocation.task.is_some());
        if let (Some(terms), Ok(tool)) = (invocation.task, &invocation.tool) {
            let claim = Claim::of_task(ctx.caller(), tool, terms.approval, terms.ends_at);
            event.task = Some((claim, terms));
        }
        let view = invocation.view?;
        let (input, bytes) = invocation.body?;
        event.commit_input(self, input.root());
        let aim = invocation.aim;
        if aim != Aim::Use {
            let kind = invocation.tool.as_ref().map(CapabilityId::kind);
            event.note_method(self, aim.method(kind.unwrap_or(CapabilityKind::Skill)));
        }
        let asked = invocation.tool?;
        let uri = input.root().get("uri").and_then(JsonValue::text);
        let is_named = matches!(asked.kind(), CapabilityKind::Resource | CapabilityKind::Skill);
        if is_named && uri != Some(asked.name()) {
            return Err(Refusal::bad_request("`uri` has to be that of the resource."));
        }
        let visible = self.tools.find_used(ctx, &asked, uri)?;
        event.set_target(visible.target());
        ctx.trace_tool(&visible.tool);
        let conversation = invocation.conversation;
        let of_key = key.map(|key| {
            let id = &visible.tool.id;
            let leg = conversation.fingerprint();
            Claim::of_call(ctx.caller(), &key, id, view.as_str(), input.root(), &leg)
        });
        let claim = event.task.as_ref().map(|(claim, _)| claim.clone()).or(of_key);
        let about = None;
        Ok(ParsedCall { visible, view, claim, input, aim, bytes, conversation, about })
    }

    /// The target of a call as far as its path names one. What is no tool id is not recorded, nor an
    /// unknown id in which DLP finds something: it may be a secret in the wrong place.
    fn target_of(&self, tool: Option<&CapabilityId>) -> Target {
        let capability = tool.map(|id| id.kind().governed());
        // A URI is what the caller wrote; whether it is listed for another org, or hidden, is not told.
        let named = tool.map(|id| match capability {
            Some(kind @ (CapabilityKind::Resource | CapabilityKind::Skill)) => {
                format!("{}{}:*", kind.prefix(), id.provider())
            }
            Some(_) | None => id.to_string(),
        });
        let id = named.filter(|id| {
            let is_listed = self.catalogue.tools.load().contains_key(id);
            is_listed || self.screening.is_clean(id)
        });
        Target { capability, credential: None, id, provider_id: None, kind: "mcp", version: None }
    }

    /// Charges the call and looks at its key. A request that is refused already costs a request, as
    /// does one that was answered before: it is given that answer, also without invocations left.
    pub(super) async fn admit_call(
        &self,
        ctx: &Ctx,
        parsed: Result<ParsedCall, Refusal>,
    ) -> Result<ParsedCall, Rejection> {
        self.enter_stage(ctx, Stage::Limits);
        let known = match parsed.as_ref().map(|parsed| &parsed.claim) {
            Ok(Some(claim)) => self.find_meaning(ctx.caller().org_id, claim).await,
            Ok(None) | Err(_) => Ok(KeyMeaning::Free),
        };
        let cost = match (&parsed, &known) {
            (Err(_), _) | (_, Err(_) | Ok(KeyMeaning::Answered(_))) => Cost::Request,
            (Ok(_), Ok(KeyMeaning::Free | KeyMeaning::UnderWay(_) | KeyMeaning::Reused(_))) => {
                Cost::Call
            }
        };
        self.quotas.charge_invoker(ctx, cost).await.map_err(Rejection::of_limit)?;
        let parsed = parsed?;
        match known? {
            KeyMeaning::Answered(replayed) => Err(Rejection::Replayed(replayed)),
            known @ (KeyMeaning::Free | KeyMeaning::UnderWay(_) | KeyMeaning::Reused(_)) => {
                known.free()?;
                Ok(parsed)
            }
        }
    }

    /// Reads the list of the server again where it is older than a minute: the tool as it is listed
    /// now, or `None` if it is the same.
    pub(super) async fn refresh_tool(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        input: Node<'_>,
        aim: &Aim,
        admission: &mut Admission,
    ) -> Result<Option<Visible>, Refusal> {
        self.enter_stage(ctx, Stage::Validate);
        let listed = self.providers.refresh_tool_list(visible, admission).await?;
        let method = aim.method(visible.tool.id.kind());
        let uri = input.get("uri").and_then(JsonValue::text);
        match (listed, uri) {
            // The new list may name the URI itself, or hold it back.
            (Some(listed), Some(uri)) if method == Method::ReadResource => {
                let id = format!("{}:{uri}", listed.connection.slug());
                let asked = parse_id(CapabilityKind::Resource, &id)?;
                self.tools.find_used(ctx, &asked, Some(uri)).map(Some)
            }
            (listed, _) => Ok(listed),
        }
    }

    /// Scans the call, decides by policy, and fulfils the obligations of the decision.
    pub(super) async fn judge(
        &self,
        ctx: &Ctx,
        call: Result<Use, Denial>,
        policies: &PolicySet,
        dlp: &Dlp,
        admission: &mut Admission,
        is_counted: bool,
    ) -> Result<Cleared<Use>, HaltedCall> {
        let call = call?;
        let subject = self.screening.subject(&ctx.session.tenant, call.tool());
        self.enter_stage(ctx, Stage::DlpInput);
        let scanned = dlp.scan_call(call, &subject, admission).await?;
        self.enter_stage(ctx, Stage::PolicyInput);
        let permitted = scanned.decide(policies, dlp.engine(), ctx.asker(self.capture))?;
        if is_counted {
            return Ok(permitted.fulfil(dlp.engine(), &Uncounted)?);
        }
        let limiter = self.policies.limiter(ctx, permitted.rates()).await;
        let limiter = limiter.map_err(|_| HaltedCall::Stopped(uncounted()))?;
        Ok(permitted.fulfil(dlp.engine(), &limiter)?)
    }

    /// The refusal of a call that the decision does not let pass, with its event.
    pub(super) fn deny(
        &self,
        ctx: &Ctx,
        event: &mut CallEvent,
        judged: HaltedCall,
        visible: &Visible,
        policies: &PolicySet,
    ) -> Refusal {
        let denial = match judged {
            HaltedCall::Denied(denial) => denial,
            HaltedCall::Stopped(refusal) => return refusal,
        };
        if let Some(ruling) = denial.ruling() {
            self.follow_up(ctx, &visible.tool, ruling, Verdict::Denied);
            event.add_inputs(self, &ruling.inputs);
            event.capture_input(self, ruling);
        } else if let Some(policy) = denial.policy() {
            self.tally_outright(ctx, policy);
        }
        event.deny(&denial, policies.version())
    }

    /// Makes the connection usable, and refuses a call through one that rests after failures.
    pub(super) async fn connect(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        admission: &mut Admission,
        goes_on: bool,
    ) -> Result<(), Refusal> {
        self.enter_stage(ctx, Stage::Connection);
        let connection = &visible.connection;
        self.providers.ensure_credentials(connection, admission).await?;
        // A call that goes on as a task is no new one.
        if goes_on {
            return Ok(());
        }
        let resting = connection.server().check(connection.org, &visible.tool.id);
        resting.map_err(|error| connection.refusal(&error))
    }
}
