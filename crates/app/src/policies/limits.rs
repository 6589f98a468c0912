//! The limits of plans: what a request takes from them, and what is left.
//!
//! One node counts by itself. Several count together in [`SharedCounters`], where a call takes its
//! request and its invocation at once; what they last answered to this node is kept, so that
//! responses can show it and a plan that is used up is refused at no cost.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use portcullis_core::{
    audit::{Actor, EventType},
    clock::{Clock, Timestamp},
    id::OrgId,
    limits::{Bucket, Resource},
    principal::Plan,
    refusal::{Refusal, Unavailable},
};
use portcullis_store::{Charge, Cost, SharedCounters};

use crate::{
    audit::Audit,
    base::{
        Base,
        tenants::{
            Account, Tenant, Tenants,
            sources::{LookUp, Sources},
        },
    },
    request::{Ctx, Origin},
};

/// Counting mode of this node.
#[derive(Debug)]
pub(crate) struct Limits {
    /// With other nodes; by itself when there is none.
    pub(crate) shared: Option<SharedCounters>,
    /// By how many microseconds the clock of the counters is ahead of this node's.
    ahead: AtomicI64,
}

impl Limits {
    pub(crate) const fn new(shared: Option<SharedCounters>) -> Self {
        Self { shared, ahead: AtomicI64::new(0) }
    }

    /// The moment by which windows are told apart.
    fn now(&self, clock: &dyn Clock) -> Timestamp {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Timestamp::from_micros(clock.now().as_micros().saturating_add(ahead))
    }

    /// Fails while the shared counters cannot be reached.
    pub(crate) fn ready(&self) -> Result<(), Refusal> {
        match &self.shared {
            Some(shared) if !shared.is_reachable() => Err(uncounted()),
            Some(_) | None => Ok(()),
        }
    }
}

/// The answer while the counters cannot be reached: nothing passes uncounted.
pub(crate) fn uncounted() -> Refusal {
    Refusal::Unavailable { reason: Unavailable::Limits }
}

/// A credential that opens nothing, or nothing any more in this minute.
#[derive(Debug)]
pub struct Refused {
    pub refusal: Refusal,
    /// The plan that is used up, of a good credential.
    pub account: Option<Account>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, account: None }
    }
}

/// Limits of a node.
#[derive(Debug)]
pub struct LimitParts {
    /// Counters of plans, if this node does not count alone.
    pub counters: Option<SharedCounters>,
    /// Failed requests without a valid token that an address may make in a minute.
    pub unauthenticated_per_minute: u32,
}

/// Plans of orgs and buckets of sources, as this node counts them.
#[derive(Debug)]
pub struct Quotas {
    pub(crate) base: Arc<Base>,
    pub(super) audit: Arc<Audit>,
    pub(crate) limits: Limits,
    pub(crate) tenants: Tenants,
    pub(crate) sources: Sources,
}

impl Quotas {
    /// Writes what was used of plans since the last write.
    pub(crate) async fn write_usage(&self) {
        let used = self.tenants.take_usage();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.base.store.add_usage(&used, self.base.now()).await {
            error.log();
            for (org, usage) in used {
                self.tenants.tenant(org).usage.give_back(usage);
            }
        }
    }

    pub(crate) fn new(
        base: Arc<Base>,
        audit: Arc<Audit>,
        LimitParts { counters, unauthenticated_per_minute }: LimitParts,
    ) -> Self {
        let limits = Limits::new(counters);
        let tenants = Tenants::default();
        Self { base, audit, limits, tenants, sources: Sources::new(unauthenticated_per_minute) }
    }

    /// Charges the source; when its bucket is empty the answer is 429 whatever was wrong.
    pub(crate) fn charged(&self, refusal: Refusal, origin: &Origin) -> Refused {
        if let Refusal::Unavailable { .. } = refusal {
            return refusal.into();
        }
        match self.sources.charge(origin.source_ip, origin.arrived) {
            Ok(_) => refusal.into(),
            Err(bucket) => self.limited(bucket).into(),
        }
    }

    /// Charges the source for a request that was refused before anybody was known.
    #[must_use]
    pub fn charge_source(&self, refusal: Refusal, origin: &Origin) -> Refused {
        self.charged(refusal, origin)
    }

    /// Returns true if a credential of a source may be looked up.
    pub(crate) fn may_look_up(&self, kind: LookUp, origin: &Origin) -> bool {
        self.sources.may_look_up(kind, origin.source_ip, origin.arrived)
    }

    /// The same for the hash of a token or a cookie.
    pub(crate) fn may_look_up_hash(&self, kind: LookUp, hash: &[u8; 32], origin: &Origin) -> bool {
        self.sources.may_look_up_hash(kind, hash, origin.source_ip, origin.arrived)
    }

    /// True if limits can be counted at this moment.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.limits.ready().is_ok()
    }

    /// Refuses the body of a source that has used up its requests and its share of look-ups: it may hold a
    /// credential.
    pub fn screen_sender(&self, origin: &Origin) -> Result<(), Refusal> {
        if self.sources.may_send_a_body(origin.source_ip, origin.arrived) {
            return Ok(());
        }
        Err(self.limited(self.sources.peek(origin.source_ip, origin.arrived)))
    }

    /// Counts the request of a valid token against its org's plan.
    pub async fn admit_request(&self, ctx: &Ctx) -> Result<(), Refusal> {
        let charged = self.charge(&ctx.session.account(), Cost::Request).await;
        charged.inspect_err(|refusal| self.note_throttled(ctx, refusal))
    }

    /// Admits a caller that wants to invoke. A node that counts by itself counts the request here;
    /// where nodes count together it is counted when it is known whether it is an invocation, and
    /// only a plan that is known to be used up is refused already.
    pub fn admit_invoker(&self, ctx: &Ctx) -> Result<(), Refusal> {
        let account = ctx.session.account();
        let now = self.limits_now();
        let Account { tenant, plan } = account;
        let admitted = if self.limits.shared.is_none() {
            tenant.take(Resource::Requests, plan, now)
        } else {
            let bucket = tenant.peek(Resource::Requests, plan, now);
            if bucket.remaining == 0 { Err(bucket) } else { Ok(bucket) }
        };
        let admitted = admitted.map(drop).map_err(|bucket| self.limited(bucket));
        admitted.inspect_err(|refusal| self.note_throttled(ctx, refusal))
    }

    /// Counts the request of a caller that was admitted as an invoker and asks for something else.
    pub async fn charge_request(&self, ctx: &Ctx) -> Result<(), Refusal> {
        let charged = self.charge_invoker(ctx, Cost::Request).await;
        charged.inspect_err(|refusal| self.note_throttled(ctx, refusal))
    }

    /// Fails if it is known here that the plan has no request left.
    pub(crate) fn spare(&self, account: &Account) -> Result<(), Refusal> {
        let bucket = self.peek(account, Resource::Requests);
        if bucket.remaining == 0 { Err(self.limited(bucket)) } else { Ok(()) }
    }

    /// Counts what an invoker's request costs, as far as [`Self::admit_invoker`] did not. Refuses
    /// with the resource that is used up.
    pub(crate) async fn charge_invoker(&self, ctx: &Ctx, cost: Cost) -> Result<(), Refusal> {
        if self.limits.shared.is_some() {
            return self.charge(&ctx.session.account(), cost).await;
        }
        match cost {
            Cost::Request => Ok(()),
            Cost::Call => {
                let tenant = &ctx.session.tenant;
                let plan = ctx.caller().plan;
                let taken = tenant.take(Resource::Invocations, plan, self.base.clock.now());
                taken.map(drop).map_err(|bucket| self.limited(bucket))
            }
        }
    }

    /// Counts a request against the plan of an account; one beyond it is told in the log.
    pub(crate) async fn admit(
        &self,
        account: &Account,
        who: impl FnOnce() -> (OrgId, Actor),
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let charged = self.charge(account, Cost::Request).await;
        charged.inspect_err(|refusal| {
            if let Refusal::RateLimited { .. } = refusal {
                let (org, actor) = who();
                self.audit.note_refused(EventType::RequestThrottled, org, actor, refusal, origin);
            }
        })
    }

    /// Notes that a request was refused by the plan, before anything was looked at.
    pub(crate) fn note_throttled(&self, ctx: &Ctx, refusal: &Refusal) {
        if let Refusal::RateLimited { .. } = refusal {
            let org = ctx.caller().org_id;
            let actor = Actor::of(ctx.caller());
            self.audit.note_refused(EventType::RequestThrottled, org, actor, refusal, &ctx.origin);
        }
    }

    async fn charge(&self, account: &Account, cost: Cost) -> Result<(), Refusal> {
        let Account { tenant, plan } = account;
        let Some(shared) = &self.limits.shared else {
            let taken = tenant.take(Resource::Requests, *plan, self.base.clock.now());
            return taken.map(drop).map_err(|bucket| self.limited(bucket));
        };
        self.spare(account)?;
        self.charge_shared(shared, tenant, *plan, cost).await
    }

    async fn charge_shared(
        &self,
        shared: &SharedCounters,
        tenant: &Tenant,
        plan: Plan,
        cost: Cost,
    ) -> Result<(), Refusal> {
        let asked = self.base.clock.now();
        let charge = Charge {
            org: tenant.org,
            offset: tenant.offset,
            cost,
            requests: plan.requests_per_minute(),
            invocations: plan.invocations_per_minute(),
            seen: tenant.usage_at(self.limits_now()),
        };
        let charged = shared.charge(&charge).await.map_err(|error| {
            tracing::debug!(%error, "a request could not be counted");
            uncounted()
        })?;
        let told = self.base.clock.now();
        let middle = asked.as_micros() / 2 + told.as_micros() / 2;
        self.limits.ahead.store(charged.now.as_micros() - middle, Ordering::Relaxed);
        tenant.learn(charged.counted);
        match charged.exhausted {
            None => {
                tenant.usage.note(Resource::Requests);
                if let Cost::Call = cost {
                    tenant.usage.note(Resource::Invocations);
                }
                Ok(())
            }
            Some(resource) => Err(self.limited(Bucket {
                resource,
                limit: resource.limit(plan),
                remaining: 0,
                resets_at: charged.counted.window.ends_at,
            })),
        }
    }

    /// The moment by which the windows of plans are told apart: that of the counters, if nodes
    /// count together.
    #[must_use]
    pub fn limits_now(&self) -> Timestamp {
        self.limits.now(&*self.base.clock)
    }

    /// The bucket of an org as it stands, as far as this node knows.
    #[must_use]
    pub fn peek(&self, account: &Account, resource: Resource) -> Bucket {
        account.tenant.peek(resource, account.plan, self.limits_now())
    }

    /// The bucket of an unknown caller's source as it stands.
    #[must_use]
    pub fn peek_source(&self, origin: &Origin) -> Bucket {
        self.sources.peek(origin.source_ip, self.base.clock.now())
    }

    /// The refusal when a bucket is empty.
    pub(crate) fn limited(&self, bucket: Bucket) -> Refusal {
        let now = match bucket.resource {
            Resource::Unauthenticated => self.base.clock.now(),
            Resource::Requests | Resource::Invocations => self.limits_now(),
        };
        let left = bucket.resets_at.saturating_mul(1_000_000) - now.as_micros();
        Refusal::RateLimited {
            resource: bucket.resource,
            limit: bucket.limit,
            retry_after: left.div_euclid(1_000_000).saturating_add(1).max(1),
            reset_at: Timestamp::from_micros(bucket.resets_at.saturating_mul(1_000_000)),
        }
    }
}
