//! The org itself: its plan, the limits of the plan, and what was used of them.

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    limits::{Bucket, Resource},
    principal::Plan,
    refusal::Refusal,
};
use portcullis_store::Org;
use serde::Serialize;
use utoipa::ToSchema;

use super::Administration;
use crate::request::Ctx;

/// An org as its admins see it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Org)]
pub struct OrgView {
    /// Its id.
    #[schema(value_type = String, example = "org_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: OrgId,
    #[schema(example = "acme")]
    pub name: String,
    /// `free`, `pro` or `enterprise`; changed by the operator only.
    #[schema(example = "pro")]
    pub plan: &'static str,
    pub created_at: Timestamp,
    pub limits: OrgLimits,
    pub used: OrgUsage,
}

/// Limits of the plan.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct OrgLimits {
    pub requests_per_minute: u32,
    pub invocations_per_minute: u32,
}

/// Requests and invocations that were counted against the plan.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct OrgUsage {
    /// In the window of the limits at this moment.
    pub minute: WindowUsage,
    /// Since midnight UTC; what other nodes counted in the last ten seconds can be missing, as below.
    pub day: WindowUsage,
    /// Since the beginning of the month, UTC.
    pub month: WindowUsage,
}

/// Usage within a span of time.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct WindowUsage {
    pub requests: u64,
    pub invocations: u64,
    /// When counting begins anew.
    pub ends_at: Timestamp,
}

impl Administration {
    /// The caller's org.
    pub async fn org(&self, ctx: &Ctx) -> Result<OrgView, Refusal> {
        let org = self.found_org(ctx).await?;
        let day = day_of(self.base.now());
        let month = month_of(self.base.now());
        Ok(OrgView {
            id: org.id,
            name: org.name,
            plan: org.plan.name(),
            created_at: org.created_at,
            limits: limits(org.plan),
            used: OrgUsage {
                minute: self.minute(ctx),
                day: self.since(ctx, day).await?,
                month: self.since(ctx, month).await?,
            },
        })
    }

    /// The caller's org as it is stored.
    pub async fn found_org(&self, ctx: &Ctx) -> Result<Org, Refusal> {
        let id = ctx.caller().org_id;
        let found = self.base.store.find_org(id).await?;
        found.ok_or_else(|| Refusal::not_found("org", &id.to_string()))
    }

    /// Usage within a span of whole days that has not ended.
    async fn since(&self, ctx: &Ctx, span: Span) -> Result<WindowUsage, Refusal> {
        let written = self.base.store.usage_since(ctx.caller().org_id, span.begins_at).await?;
        let waiting = ctx.session.tenant.usage.waiting();
        Ok(WindowUsage {
            requests: written.requests + waiting.requests,
            invocations: written.invocations + waiting.invocations,
            ends_at: span.ends_at,
        })
    }

    fn minute(&self, ctx: &Ctx) -> WindowUsage {
        let account = ctx.session.account();
        let bucket = |resource| self.quotas.peek(&account, resource);
        let used = |bucket: Bucket| u64::from(bucket.limit.saturating_sub(bucket.remaining));
        let requests = bucket(Resource::Requests);
        WindowUsage {
            requests: used(requests),
            invocations: used(bucket(Resource::Invocations)),
            ends_at: Timestamp::from_micros(requests.resets_at.saturating_mul(1_000_000)),
        }
    }
}

/// A span of whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    begins_at: Timestamp,
    ends_at: Timestamp,
}

const DAY: i64 = 24 * 60 * 60;

fn day_of(now: Timestamp) -> Span {
    let begins = now.as_seconds().div_euclid(DAY) * DAY;
    let begins_at = Timestamp::from_micros(begins.saturating_mul(1_000_000));
    Span { begins_at, ends_at: begins_at.plus_seconds(DAY) }
}

fn month_of(now: Timestamp) -> Span {
    let begins_at = month_begin(now);
    Span { begins_at, ends_at: month_begin(begins_at.plus_seconds(32 * DAY)) }
}

/// The first midnight of the month; the moment itself if it is none that is written so.
fn month_begin(moment: Timestamp) -> Timestamp {
    let text = moment.to_string();
    let month = text.get(.."2026-11".len()).map(|month| format!("{month}-01T00:00:00Z"));
    month.and_then(|text| Timestamp::parse_rfc3339(&text)).unwrap_or(moment)
}

const fn limits(plan: Plan) -> OrgLimits {
    OrgLimits {
        requests_per_minute: plan.requests_per_minute(),
        invocations_per_minute: plan.invocations_per_minute(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        for (now, day, month, next) in [
            ("2026-11-26T17:03:08Z", "2026-11-26", "2026-11-01", "2026-12-01"),
            ("2026-12-31T23:59:59.999Z", "2026-12-31", "2026-12-01", "2027-01-01"),
            ("2028-02-29T00:00:00Z", "2028-02-29", "2028-02-01", "2028-03-01"),
            ("2027-01-31T12:00:00Z", "2027-01-31", "2027-01-01", "2027-02-01"),
        ] {
            let midnight = |date: &str| at(&format!("{date}T00:00:00Z"));

            assert_eq!(day_of(at(now)).begins_at, midnight(day));
            let month = Span { begins_at: midnight(month), ends_at: midnight(next) };
            assert_eq!(month_of(at(now)), month, "{now}");
        }
    }
}
