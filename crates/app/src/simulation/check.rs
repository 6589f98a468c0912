//! Checking a draft: it is loaded as a simulation loads it, and nothing is asked of it or recorded.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    policy::{DraftError, PolicyError},
    refusal::Refusal,
};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{
    SetsFailure, Simulations, not_drafted,
    request::{Draft, Options},
    sets::{self, CandidateSet},
};
use crate::{base::admission::overloaded, request::Ctx};

/// The longest that a check waits and loads.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Errors and warnings of a draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyCheck {
    /// True if the draft loads.
    pub valid: bool,
    /// The first hundred; each `path` is a JSON Pointer into the request.
    pub errors: Vec<PolicyError>,
    /// The set of the draft, with its warnings; absent if it does not load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateSet>,
}

impl Simulations {
    /// Loads a draft and tells its errors and warnings. Nothing is recorded.
    pub async fn check(self: &Arc<Self>, ctx: &Ctx, draft: Draft) -> Result<PolicyCheck, Refusal> {
        let options = Options::default();
        let deadline = Instant::now() + MAX_TIME;
        let turn = self.work.turn(Some(ctx.caller().org_id), deadline).await;
        let turn = turn.ok_or_else(overloaded)?;
        match self.load_sets(ctx, draft.clone(), None, &turn, &options).await {
            Ok(sets) => {
                let candidate = Some(sets.reported().candidate);
                Ok(PolicyCheck { valid: true, errors: Vec::new(), candidate })
            }
            Err(SetsFailure::Draft(DraftError::Policies(errors))) => {
                let errors = sets::placed(&draft, errors);
                Ok(PolicyCheck { valid: false, errors, candidate: None })
            }
            Err(SetsFailure::Draft(DraftError::Stopped)) => Err(overloaded()),
            Err(SetsFailure::Draft(error @ DraftError::TooLarge { .. })) => {
                Err(not_drafted(&draft, &error, &options))
            }
            Err(SetsFailure::Refused(refusal)) => Err(refusal),
        }
    }
}
