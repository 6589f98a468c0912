//! On whose behalf a transaction works, and the wall behind the statements.
//!
//! Every statement names its org. On PostgreSQL row-level security stands behind that: a
//! transaction says first whose rows it is about, and sees and writes no others, whatever its
//! statements say. What works for all orgs says so by name.

use std::borrow::Cow;

use portcullis_core::id::OrgId;

use super::{postgres::Pool, session::Session};
use crate::error::DriverError;

/// Rows that a transaction may see and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Org(OrgId),
    /// Everybody's: what the operator does, jobs that look for work, the writer of the audit log,
    /// sealing several logs at once, and finding out whose something is.
    Installation,
}

impl From<OrgId> for Scope {
    fn from(org: OrgId) -> Self {
        Self::Org(org)
    }
}

impl From<Option<OrgId>> for Scope {
    /// Rows without an org belong to the installation.
    fn from(org: Option<OrgId>) -> Self {
        org.map_or(Self::Installation, Self::Org)
    }
}

impl Scope {
    /// The statements that open a transaction. One round trip, no more than opening it alone.
    fn begin(self) -> Cow<'static, str> {
        match self {
            Self::Org(org) => format!("BEGIN; SET LOCAL portcullis.org = '{org}'").into(),
            Self::Installation => "BEGIN; SET LOCAL portcullis.installation = 'on'".into(),
        }
    }
}

/// Opens a transaction for the scope.
pub(crate) async fn begin(pool: &Pool, scope: Scope) -> Result<Session, DriverError> {
    pool.begin(&scope.begin()).await.map(Session::Postgres)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_says_whose_it_is_before_anything_else() {
        let org: OrgId = "org_01M754BKTKFVJC7V0B9VHVKZBP".parse().unwrap();

        let text = |scope: Scope| scope.begin().into_owned();

        let ours = "BEGIN; SET LOCAL portcullis.org = 'org_01M754BKTKFVJC7V0B9VHVKZBP'";
        assert_eq!(text(org.into()), ours);
        assert_eq!(text(Some(org).into()), ours);
        assert_eq!(text(None.into()), "BEGIN; SET LOCAL portcullis.installation = 'on'");
    }
}
