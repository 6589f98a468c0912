//! A bounded quantity that all holders share, and of which each may hold a share at most.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_app::subnet;
use portcullis_core::id::{OrgId, PrincipalId};

/// Connections, streams or bytes that may be held at once, by all and by each holder.
#[derive(Debug, Default)]
pub struct Quota {
    limit: usize,
    share: usize,
    is_fair: bool,
    /// The sum of all shares; it changes only under the lock of `by_holder`.
    total: AtomicUsize,
    by_holder: Mutex<HashMap<Holder, usize>>,
}

/// Holder of a share of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// An IPv4 address, or an IPv6 network of 64 bits.
    Source(IpAddr),
    /// An org.
    Org(OrgId),
    /// A principal.
    Principal(PrincipalId),
}

impl From<IpAddr> for Holder {
    fn from(address: IpAddr) -> Self {
        Self::Source(subnet(address))
    }
}

impl From<OrgId> for Holder {
    fn from(org: OrgId) -> Self {
        Self::Org(org)
    }
}

impl From<PrincipalId> for Holder {
    fn from(principal: PrincipalId) -> Self {
        Self::Principal(principal)
    }
}

/// The limit that a request for more has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The holder has its share.
    Share,
    /// All that there is is held, or the rest is for others.
    All,
}

/// An amount that is held until this is dropped.
#[derive(Debug)]
pub struct Permit {
    quota: Arc<Quota>,
    holder: Option<Holder>,
    amount: usize,
}

impl Quota {
    /// A quota of `limit`, of which each holder may have `share`.
    #[must_use]
    pub fn new(limit: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { limit, share, ..Self::default() })
    }

    /// The same, but no holder may have more than half of what is free: however many take what they
    /// can, something is left for one that comes.
    #[must_use]
    pub fn fair(limit: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { limit, share, is_fair: true, ..Self::default() })
    }

    /// Takes `amount` for `holder`. `None` stands for one that no share bounds.
    pub fn take(
        self: &Arc<Self>,
        holder: Option<impl Into<Holder>>,
        amount: usize,
    ) -> Result<Permit, Exhausted> {
        let holder = holder.map(Into::into);
        let mut permit = Permit { quota: Arc::clone(self), holder, amount: 0 };
        permit.grow(amount)?;
        Ok(permit)
    }

    /// True while all together hold at most `amount`. Takes no lock.
    pub(crate) fn holds_little(&self, amount: usize) -> bool {
        self.total.load(Ordering::Relaxed) <= amount
    }

    fn lock_counts(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        self.by_holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Takes `more` besides. Fails without a change when that is too much.
    pub fn grow(&mut self, more: usize) -> Result<(), Exhausted> {
        let mut held = self.quota.lock_counts();
        let own = self.holder.and_then(|holder| held.get(&holder)).copied();
        let own = own.unwrap_or_default().saturating_add(more);
        if self.holder.is_some() && own > self.quota.share {
            return Err(Exhausted::Share);
        }
        let total = self.quota.total.load(Ordering::Relaxed);
        let free = self.quota.limit.saturating_sub(total);
        let is_for_others = self.quota.is_fair && self.holder.is_some() && own > free / 2;
        if more > free || is_for_others {
            return Err(Exhausted::All);
        }
        self.quota.total.store(total + more, Ordering::Relaxed);
        if let Some(holder) = self.holder {
            held.insert(holder, own);
        }
        self.amount += more;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.quota.lock_counts();
        let total = self.quota.total.load(Ordering::Relaxed).saturating_sub(self.amount);
        self.quota.total.store(total, Ordering::Relaxed);
        let Some(holder) = self.holder else { return };
        if let Some(own) = held.get_mut(&holder) {
            *own = own.saturating_sub(self.amount);
            if *own == 0 {
                held.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as the quota is asked")]
    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn a_source_holds_its_share_at_most_and_leaves_the_rest_to_others() {
        let quota = Quota::new(10, 4);
        let held: Vec<_> = (0..4).map(|_| quota.take(from("203.0.113.7"), 1).unwrap()).collect();

        assert_eq!(quota.take(from("203.0.113.7"), 1).unwrap_err(), Exhausted::Share);
        let other = quota.take(from("203.0.113.8"), 4).unwrap();
        assert_eq!(quota.take(from("203.0.113.9"), 3).unwrap_err(), Exhausted::All);
        drop((held, other));

        assert!(quota.lock_counts().is_empty());
        assert_eq!(quota.take(None::<IpAddr>, 10).unwrap().amount, 10);
    }

    #[test]
    fn eight_that_take_their_shares_leave_something_for_a_ninth() {
        let quota = Quota::fair(64, 8);
        let mut held = Vec::new();
        for number in 1..=8 {
            let source = format!("203.0.113.{number}");
            held.extend(std::iter::from_fn(|| quota.take(from(&source), 1).ok()));
        }

        assert_eq!(held.len(), 57, "six have their share, two half of what was free");
        assert_eq!(quota.take(from("203.0.113.8"), 1).unwrap_err(), Exhausted::All);
        assert!(quota.take(from("203.0.113.9"), 2).is_ok());
    }

    #[test]
    fn an_ipv6_network_is_one_source_and_a_mapped_address_is_its_ipv4_address() {
        let quota = Quota::new(10, 1);
        let _held = [
            quota.take(from("2001:db8::1"), 1).unwrap(),
            quota.take(from("192.0.2.1"), 1).unwrap(),
        ];

        assert!(quota.take(from("2001:db8::2"), 1).is_err());
        assert!(quota.take(from("::ffff:192.0.2.1"), 1).is_err());
        assert!(quota.take(from("2001:db8:0:1::2"), 1).is_ok());
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let quota = Quota::new(10, 10);
        let mut permit = quota.take(from("192.0.2.1"), 6).unwrap();

        assert_eq!(permit.grow(5), Err(Exhausted::Share));
        assert_eq!((permit.amount, quota.holds_little(6), quota.holds_little(5)), (6, true, false));
        assert_eq!(permit.grow(4), Ok(()));
    }
}
