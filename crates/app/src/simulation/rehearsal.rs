//! Hypothetical calls before a set that need not be in force, without a node around it.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    dlp::FingerprintKey,
    policy::{DraftBounds, DraftError, PolicySet, Principal},
    refusal::Refusal,
};
use tokio::time::Instant;

use super::{
    Base, Baseline, SimulatedPrincipal, Simulation, Subject,
    answers::{Until, answer, case, identity},
    judge::Simulator,
    members::violation,
    report::RequestReport,
    request::refusal,
    sets::{BaselineSource, Origins, Sets, based, drafted, told_all},
};
use crate::base::long_work::Stop;
pub(crate) use crate::policies::policy_tests::Rehearsal;

/// The org of those who are only imagined.
const ORG: &str = "org_simulated";

impl Rehearsal<'_> {
    /// Answers hypothetical calls as the API would, with `live` as the set in force. Recorded
    /// calls are not at hand here.
    pub(crate) fn simulate(
        &self,
        live: &Arc<PolicySet>,
        simulation: &Simulation,
    ) -> Result<RequestReport, Refusal> {
        let elsewhere = |place| refusal(vec![violation(place, "needs a gateway: ask its API")]);
        let Subject::Asks(asks) = &simulation.subject else { return Err(elsewhere("/replay")) };
        let baseline = match &simulation.baseline {
            None => None,
            Some(Baseline::Live) => Some((Arc::clone(live), BaselineSource::Live)),
            Some(Baseline::Kept(_) | Baseline::Recorded) => return Err(elsewhere("/baseline")),
        };
        let origins = match simulation.draft.base {
            Base::Empty => Origins::Empty,
            Base::Live => Origins::Live,
            Base::Kept(_) => return Err(elsewhere("/policies/base")),
        };
        // What stands beside the policies is the operator's own: it may take what it takes.
        let bounds = DraftBounds { max_checks: usize::MAX, stop: &|| false };
        let draft = &simulation.draft;
        let candidate = based(live, origins, self.ground, &bounds)
            .and_then(|base| drafted(draft, &base, None, self.ground.now, &bounds));
        let candidate = candidate.map_err(|error| match error {
            DraftError::Policies(errors) => refusal(told_all(draft, &errors)),
            DraftError::TooLarge { .. } | DraftError::Stopped => Refusal::Internal,
        })?;
        let sets = Sets { live: Arc::clone(live), candidate, baseline, org: None };
        let mut cases = Vec::with_capacity(asks.len());
        for ask in asks {
            let tool = self.ground.catalogue.find_tool(&ask.tool);
            let tool = tool.map_err(|_| Refusal::not_found("mcp", &ask.tool))?;
            let who = ask.who.clone().unwrap_or_else(SimulatedPrincipal::nobody);
            let principal = Arc::new(Principal::new(identity(who, ORG.to_owned())));
            cases.push(case(ask, principal, tool, self.ground.now));
        }
        let key = FingerprintKey::new([0; 32]);
        let simulator = Simulator { engine: self.engine, key: &key, node: None, org: None };
        let stop = Stop::at(Instant::now() + Duration::from_millis(simulation.options.timeout_ms));
        let until = Until { stop: &stop, named: usize::MAX };
        Ok(answer(&simulator, asks, &cases, &sets, &simulation.options, until).0)
    }
}
