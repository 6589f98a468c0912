//! On whose behalf a transaction works, and the wall behind the statements.
//!
//! Every statement names its org. On PostgreSQL row-level security stands behind that: a
//! transaction says first whose rows it is about, and sees and writes no others, whatever its
//! statements say. What works for all orgs says so by name.

use std::borrow::Cow;

use portcullis_core::id::OrgId;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::time::timeout;

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

/// Opens a transaction for the scope. A connection that ended while it was idle is noticed here,
/// before anything was done on it, and another one is taken; so connections are not tested before
/// they are used.
pub(crate) async fn begin(
    pool: &PgPool,
    scope: Scope,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let opening = async {
        for _ in 0..pool.options().get_max_connections() {
            let idle = pool.num_idle() > 0;
            match pool.begin_with(AssertSqlSafe(scope.begin())).await {
                Err(error) if idle && has_ended(&error) => {}
                opened => return opened,
            }
        }
        pool.begin_with(AssertSqlSafe(scope.begin())).await
    };
    let patience = pool.options().get_acquire_timeout();
    timeout(patience, opening).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Returns true if the connection is gone: cut, or ended by a server that restarts.
fn has_ended(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(error, sqlx::Error::Io(_)) || code.is_some_and(|code| code.starts_with("57P"))
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
