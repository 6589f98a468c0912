//! The nodes that serve from one PostgreSQL database: which are alive, and what they are told of
//! each other's changes.
//!
//! A node holds its name for [`LEASE_SECONDS`] at a time, by the clock of the database, over
//! connections of its own: calls that wait for the others cannot keep it from saying that it lives.

mod news;

pub use self::news::{Listener, News};

use std::time::Duration;

use crate::{
    address::Address,
    db::{Db, Pool, Scope, Session, Store, all, begin, boxed, database_clock, one, record, run},
    error::{DriverError, StoreError},
    settings::{DatabaseSettings, Target},
};

/// For how long a node holds its name without saying so again.
pub const LEASE_SECONDS: i64 = 10;

/// Time limit of a query about nodes.
const PATIENCE: Duration = Duration::from_secs(2);

/// A node as it registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    pub name: String,
    /// Identity of this process; stands in its intents.
    pub lease: String,
    /// The place it runs in. No place is served from twice at once, so a process that finds
    /// its name held there holds it instead.
    pub place: String,
    /// True if it counts limits by itself.
    pub counts_alone: bool,
    pub policy_set: Option<String>,
}

/// Another node that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveNode {
    pub name: String,
    /// True if it counts limits by itself.
    pub counts_alone: bool,
    pub policy_set: Option<String>,
}

record!(LiveNode in "nodes", |row| name, counts_alone, policy_set);

/// The register of nodes. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Nodes {
    options: Box<Address>,
    pool: Pool,
}

impl Nodes {
    /// The register in this database; `None` on SQLite, which has one node.
    #[must_use]
    pub fn of(settings: &DatabaseSettings) -> Option<Self> {
        let options = match &settings.url.0 {
            Target::Sqlite(_) => return None,
            Target::Postgres(options) => options.clone(),
        };
        let pool = Pool::new(options.as_ref().clone(), 2, PATIENCE);
        Some(Self { options, pool })
    }

    /// Makes this process the one of its name for [`LEASE_SECONDS`] from now on. `false` while
    /// another one is.
    #[boxed]
    pub async fn hold(&self, node: &NodeRecord) -> Result<bool, StoreError> {
        let held = self.ask_in_time(async |conn| {
            Ok(run!(
                conn, HOLD => &node.name, &node.lease, &node.place, node.counts_alone,
                node.policy_set.as_deref(), LEASE_SECONDS * 1_000_000
            ))
        });
        Ok(held.await? == 1)
    }

    /// The other nodes that are alive.
    #[boxed]
    pub async fn others(&self, node: &NodeRecord) -> Result<Vec<LiveNode>, StoreError> {
        self.ask_in_time(async |conn| Ok(all!(conn, OTHERS => &node.lease))).await
    }

    /// Lets go of the name: another process may hold it at once.
    #[boxed]
    pub async fn release(&self, node: &NodeRecord) -> Result<(), StoreError> {
        let release =
            concat!("UPDATE nodes SET ends_at = ", database_clock!(), " WHERE lease = $1");
        self.ask_in_time(async |conn| Ok(run!(conn, release => &node.lease))).await?;
        Ok(())
    }

    /// Listens for changes that others make. What was pushed before is not heard.
    #[boxed]
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        Listener::open(&self.options).await
    }

    /// One question, over a connection that is not used again if the answer does not come in time.
    async fn ask_in_time<T>(
        &self,
        ask: impl AsyncFnOnce(&mut Session) -> Result<T, DriverError>,
    ) -> Result<T, StoreError> {
        let mut conn = Session::Postgres(self.pool.take().await?);
        let Ok(answer) = tokio::time::timeout(PATIENCE, ask(&mut conn)).await else {
            conn.discard();
            return Err(StoreError::Unavailable("the database does not answer in time".to_owned()));
        };
        Ok(answer?)
    }
}

impl Store {
    /// Forgets nodes that are gone and left nothing open. Gives how many are gone.
    #[boxed]
    pub async fn forget_nodes(&self) -> Result<u64, StoreError> {
        match &self.db {
            Db::Sqlite { .. } => Ok(0),
            Db::Postgres(pool) => {
                // What a node left open may be of any org.
                let mut tx = begin(pool, Scope::Installation).await?;
                let gone = run!(tx, FORGET);
                tx.commit().await.map_err(StoreError::of_commit)?;
                Ok(gone)
            }
        }
    }

    /// Returns true if a node is gone that has not been forgotten.
    #[boxed]
    pub async fn has_dead_nodes(&self) -> Result<bool, StoreError> {
        match &self.db {
            Db::Sqlite { .. } => Ok(false),
            Db::Postgres(pool) => {
                let mut tx = begin(pool, Scope::Installation).await?;
                Ok(one!(tx, scalar HAS_DEAD))
            }
        }
    }
}

const HOLD: &str = concat!(
    "INSERT INTO nodes (name, lease, place, counts_alone, policy_set, started_at, ends_at) ",
    "SELECT $1, $2, $3, $4, $5, now, now + $6 FROM (SELECT ",
    database_clock!(),
    " AS now) AS clock ",
    "ON CONFLICT (name) DO UPDATE SET lease = excluded.lease, place = excluded.place, ",
    "counts_alone = excluded.counts_alone, policy_set = excluded.policy_set, started_at = CASE ",
    "WHEN nodes.lease = excluded.lease THEN nodes.started_at ELSE excluded.started_at END, ",
    "ends_at = excluded.ends_at ",
    "WHERE nodes.lease = excluded.lease OR nodes.place = excluded.place ",
    "OR nodes.ends_at <= excluded.started_at"
);

const OTHERS: &str = concat!(
    "SELECT name, counts_alone, policy_set FROM nodes WHERE lease <> $1 AND ends_at > ",
    database_clock!(),
    " ORDER BY name"
);

const HAS_DEAD: &str =
    concat!("SELECT EXISTS (SELECT 1 FROM nodes WHERE ends_at <= ", database_clock!(), ")");

const FORGET: &str = concat!(
    "DELETE FROM nodes WHERE ends_at <= ",
    database_clock!(),
    " AND NOT EXISTS (SELECT 1 FROM audit_intents WHERE audit_intents.node = nodes.lease)"
);
