//! `/v1/org`: the caller's org.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use portcullis_app::OrgView;

use crate::{Gateway, answer::One, caller::Caller, outcome::Outcome, query::Query};

/// The caller's org: its plan, the limits of the plan, and what was used of them.
#[utoipa::path(
    get, path = "/v1/org", tag = "admin", operation_id = "get_org",
    responses(
        (status = 200, description = "the org", body = One<OrgView>),
    )
)]
pub(crate) async fn get(
    Caller(ctx): Caller,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Result<Outcome, Outcome> {
    Query::parse(raw.as_deref(), &[])?;
    Ok(Outcome::data(&gateway.app.administration.org(&ctx).await?))
}
