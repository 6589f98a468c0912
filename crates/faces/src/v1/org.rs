//! `/v1/org`: the caller's org.

use portcullis_app::OrgView;

use crate::exchange::{HandlerResult, NoQuery, One, Outcome};

/// The caller's org: its plan, the limits of the plan, and what was used of them.
#[utoipa::path(
    get, path = "/v1/org", tag = "admin", operation_id = "get_org",
    responses(
        (status = 200, description = "the org", body = One<OrgView>),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery) -> HandlerResult {
    Ok(Outcome::data(&gateway.app.administration.org(&ctx).await?))
}
