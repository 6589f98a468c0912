//! Simulation: the decisions of policies about hypothetical calls, or recorded ones, under the set in
//! force, an earlier one, or a draft. Nothing is sent and no limit is spent; the request is recorded.

mod answers;
pub(crate) mod cases;
mod check;
mod decision;
mod judge;
mod members;
pub(crate) mod rehearsal;
pub(crate) mod replay;
pub(crate) mod report;
mod request;
mod sets;
mod workbench;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    audit::{Event, EventType, Outcome, Target},
    id::PrincipalId,
    policy::{DraftBounds, DraftError, PolicyFile, Principal},
    principal::Scope,
    refusal::{Executed, Refusal},
};
use portcullis_lanes::FairLimits;
use serde_json::Value;
use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

pub use self::request::{
    Ask, Base, Baseline, Draft, Expectation, Options, Replay, SimulatedPrincipal, Simulation,
    Subject,
};
use self::{
    answers::{Until, case, identity},
    judge::{Case, NodeDlp, Simulator},
    report::SimulationReport,
    request::refusal,
    sets::{BaselineSource, Origins, Sets, kept_set},
};
pub use self::{
    cases::CaseFile,
    check::PolicyCheck,
    workbench::{Unread, Workbench},
};
pub use crate::policies::policy_tests::CaseRun;
use crate::{
    audit::Audit,
    base::{
        Base as Node,
        admission::overloaded,
        long_work::{LongTurn, LongWork, Stop},
    },
    catalogue::Capabilities,
    policies::{Policies, reload::Ground},
    providers::tools::{Tools, capability_named},
    request::{Ctx, screening::Screening},
};

/// Simulations at once: each may keep a core busy that calls need. Others wait, as long as their own
/// time lasts, and orgs take turns.
const AT_ONCE: FairLimits =
    FairLimits { slots: 2, reserve: 1, waiting: 64, patience: Duration::from_mins(5) };

/// The most checks of a draft's own policies against the tools there are: about two seconds.
const MAX_CHECKS: usize = 200_000;
/// The most policies that a report names beside its decisions.
const MAX_NAMED: usize = 100_000;

/// The simulations of this node.
#[derive(Debug)]
pub struct Simulations {
    base: Arc<Node>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    policies: Arc<Policies>,
    catalogue: Arc<Capabilities>,
    tools: Arc<Tools>,
    work: LongWork,
}

impl Simulations {
    pub(crate) fn new(policies: &Arc<Policies>, tools: &Arc<Tools>) -> Self {
        let Policies { base, screening, audit, catalogue, .. } = &**policies;
        Self {
            work: LongWork::new(AT_ONCE, base.ending.clone()),
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            policies: Arc::clone(policies),
            catalogue: Arc::clone(catalogue),
            tools: Arc::clone(tools),
        }
    }

    /// Answers a simulation. It ends with its time limit, with the request or with the node.
    pub async fn simulate(
        self: &Arc<Self>,
        ctx: &Ctx,
        simulation: Simulation,
    ) -> Result<SimulationReport, Refusal> {
        let Simulation { subject, draft, baseline, options } = simulation;
        let deadline = Instant::now() + Duration::from_millis(options.timeout_ms);
        let turn = self.work.turn(Some(ctx.caller().org_id), deadline).await;
        let turn = turn.ok_or_else(overloaded)?;
        match subject {
            Subject::Asks(asks) => {
                let cases = timeout_at(deadline, self.cases(ctx, &asks)).await;
                let cases = cases.map_err(|_| late(&options))??;
                let sets = self.sets(ctx, draft, baseline, &turn, &options).await?;
                let key = self.screening.fingerprints_of(ctx.caller().org_id);
                let this = Arc::clone(self);
                let runtime = Handle::current();
                let work = move |stop: &Stop| {
                    let dlp = this.screening.dlp();
                    let node = Some(NodeDlp { dlp: &dlp, runtime });
                    let org = sets.org.as_deref();
                    let simulator = Simulator { engine: dlp.engine(), key: &key, node, org };
                    let until = Until { stop, named: MAX_NAMED };
                    answers::answer(&simulator, &asks, &cases, &sets, &options, until)
                };
                let (report, recorded) = turn.run(work).await?;
                self.simulated(ctx, recorded).await?;
                Ok(SimulationReport::Requests(report))
            }
            Subject::Replay(replay) => {
                let sets = self.sets(ctx, draft, baseline, &turn, &options).await?;
                let (report, recorded) = self.replayed(ctx, &replay, sets, &options, &turn).await?;
                self.simulated(ctx, recorded).await?;
                Ok(SimulationReport::Replay(report))
            }
        }
    }

    /// Looks up principals and tools. Asking as another principal needs `admin`.
    async fn cases(&self, ctx: &Ctx, asks: &[Ask]) -> Result<Vec<Case>, Refusal> {
        let own = ctx.caller().principal_id.to_string();
        let others = asks.iter().filter_map(|ask| ask.who.as_ref()).any(|who| !who.is_just(&own));
        if others {
            ctx.require(Scope::Admin)?;
        }
        let mut cases = Vec::with_capacity(asks.len());
        let myself = Arc::new(Principal::new(ctx.session.principal.identity().clone()));
        for ask in asks {
            let principal = match &ask.who {
                Some(who) if !who.is_just(&own) => Arc::new(self.imagined(ctx, who).await?),
                Some(_) | None => Arc::clone(&myself),
            };
            let tool = self
                .catalogue
                .visible(&ctx.session.connections, &capability_named(&ask.tool)?)?
                .tool;
            let pin = self.tools.pins.state(ctx.caller().org_id, &tool);
            cases.push(Case { pin, ..case(ask, principal, tool, ctx.origin.arrived) });
        }
        Ok(cases)
    }

    /// The principal as the request describes it, and where it is silent as the org knows it.
    async fn imagined(&self, ctx: &Ctx, who: &SimulatedPrincipal) -> Result<Principal, Refusal> {
        let org = ctx.caller().org_id;
        let mut who = who.clone();
        let Some(id) = who.id.as_deref().and_then(|id| id.parse::<PrincipalId>().ok()) else {
            return Ok(Principal::new(identity(who, org.to_string())));
        };
        if let Some(known) = self.base.store.find_principal(org, id).await? {
            let role = known.role;
            who.roles = who.roles.or_else(|| Some(vec![role.name().to_owned()]));
            let scopes = || role.scopes().iter().map(|scope| scope.as_str().to_owned()).collect();
            who.scopes = who.scopes.or_else(|| Some(scopes()));
            let mut groups = known.all_groups();
            if let Some(login) = self.base.store.last_login(org, id).await? {
                groups.extend(login.said.groups);
                let claims = login.said.claims.into_iter();
                let lists = claims.map(|(name, set)| (name, set.into_iter().collect()));
                who.claims = who.claims.or_else(|| Some(lists.collect()));
            }
            who.groups = who.groups.or_else(|| Some(groups.into_iter().collect()));
        } else {
            // The decision about another org's principal is not revealed: here it is unknown.
            who.id = None;
        }
        Ok(Principal::new(identity(who, org.to_string())))
    }

    /// The sets to ask, loaded within the time of the request.
    async fn sets(
        self: &Arc<Self>,
        ctx: &Ctx,
        draft: Draft,
        baseline: Option<Baseline>,
        turn: &LongTurn,
        options: &Options,
    ) -> Result<Sets, Refusal> {
        let given = draft.clone();
        let loaded = self.load_sets(ctx, draft, baseline, turn, options).await;
        loaded.map_err(|failure| match failure {
            SetsFailure::Draft(error) => not_drafted(&given, &error, options),
            SetsFailure::Refused(refusal) => refusal,
        })
    }

    async fn load_sets(
        self: &Arc<Self>,
        ctx: &Ctx,
        draft: Draft,
        baseline: Option<Baseline>,
        turn: &LongTurn,
        options: &Options,
    ) -> Result<Sets, SetsFailure> {
        let live = self.policies.current_of(ctx.caller().org_id);
        let origins = match (draft.kept_base(), &draft.base) {
            (Some(version), _) => {
                Origins::Kept(self.load_kept_set(version, "/policies/base").await?)
            }
            (None, Base::Empty) => Origins::Empty,
            (None, Base::Live | Base::Kept(_)) => Origins::Live,
        };
        let kept = match &baseline {
            Some(Baseline::Kept(version)) => Some(self.load_kept_set(version, "/baseline").await?),
            Some(Baseline::Live | Baseline::Recorded) | None => None,
        };
        let catalogue = self.catalogue.for_policies();
        let now = self.base.now();
        let dlp = self.screening.dlp();
        let based = turn.run(move |stop| {
            let detectors = dlp.engine().names();
            let ground = Ground { catalogue: &catalogue, detectors: &detectors, now };
            let bounds = DraftBounds { max_checks: MAX_CHECKS, stop: &|| stop.is_due() };
            let base = sets::based(&live, origins, ground, &bounds).map_err(SetsFailure::Draft)?;
            drop(detectors);
            Ok::<_, SetsFailure>((live, base, catalogue, dlp))
        });
        let (live, base, catalogue, dlp) = based.await??;
        let caller = ctx.caller().org_id;
        let org = self.policies.org_view(caller, &base.named_principals()).await?;
        let options = options.clone();
        let loaded = turn.run(move |stop| {
            let detectors = dlp.engine().names();
            let ground = Ground { catalogue: &catalogue, detectors: &detectors, now };
            let bounds = DraftBounds { max_checks: MAX_CHECKS, stop: &|| stop.is_due() };
            let candidate = sets::drafted(&draft, &base, Some(&org), now, &bounds)
                .map_err(SetsFailure::Draft)?;
            let baseline = match (baseline, kept) {
                (_, Some(files)) => {
                    let set = kept_set(&live, files, ground, &bounds);
                    let set = set.map_err(|error| unfit_baseline(&error, &options))?;
                    Some((set, BaselineSource::Kept))
                }
                (Some(Baseline::Live), None) => Some((Arc::clone(&live), BaselineSource::Live)),
                (Some(Baseline::Recorded | Baseline::Kept(_)) | None, None) => None,
            };
            let mut named = live.named_principals();
            named.extend(candidate.named_principals());
            Ok::<_, SetsFailure>((Sets { live, candidate, baseline, org: None }, named))
        });
        let (sets, named) = loaded.await??;
        let org = self.policies.org_view(caller, &named).await?;
        Ok(Sets { org: Some(Arc::new(org)), ..sets })
    }

    async fn load_kept_set(&self, version: &str, place: &str) -> Result<Vec<PolicyFile>, Refusal> {
        let unknown = || {
            let message = "is the digest of no set that was ever in force";
            refusal(vec![members::violation(place, message)])
        };
        self.policies.kept_files(version).await?.ok_or_else(unknown)
    }

    /// Records the simulation.
    async fn simulated(&self, ctx: &Ctx, simulation: Value) -> Result<(), Refusal> {
        let id = simulation.get("candidate").and_then(Value::as_str).map(str::to_owned);
        let target = Target {
            capability: None,
            credential: None,
            id,
            provider_id: None,
            kind: "policy_set",
            version: None,
        };
        let event = ctx.event(&self.screening, EventType::PolicySimulated, target);
        let detached = event.detached.keep("simulation", Some(simulation), &*self.base.random);
        let outcome = Outcome::success(Executed::No);
        self.audit.record(Event { outcome, detached, ..event }).await
    }
}

/// Failure to load the sets of a request.
enum SetsFailure {
    /// The draft, or the set that it begins with, does not load.
    Draft(DraftError),
    Refused(Refusal),
}

impl From<Refusal> for SetsFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The answer when the time is over before anything could be judged.
fn late(options: &Options) -> Refusal {
    let message = format!(
        "was over before the policies were loaded: {} ms do not suffice for this draft now",
        options.timeout_ms
    );
    refusal(vec![members::violation("/options/timeout_ms", message)])
}

fn not_drafted(draft: &Draft, error: &DraftError, options: &Options) -> Refusal {
    match error {
        DraftError::Policies(errors) => refusal(sets::told_all(draft, errors)),
        DraftError::TooLarge { size, max_checks } => {
            let message = format!(
                "takes too many checks: {} policies against {} tools are more than {max_checks}; \
                 leave out policies, or name tools in their scopes",
                size.policies, size.tools
            );
            refusal(vec![members::violation("/policies", message)])
        }
        DraftError::Stopped => late(options),
    }
}

fn unfit_baseline(error: &DraftError, options: &Options) -> Refusal {
    match error {
        DraftError::Policies(errors) => {
            let told = errors.iter().take(20).map(|error| {
                members::violation("/baseline", format!("no longer fits the tools: {error}"))
            });
            refusal(told.collect())
        }
        DraftError::TooLarge { .. } | DraftError::Stopped => late(options),
    }
}
