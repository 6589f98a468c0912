//! The policies that were ever in force, by version. They belong to the installation, not to an
//! org: an event of any org may point at them.

use portcullis_core::clock::Timestamp;

use crate::{
    db::{Store, boxed, change, changed, find, read, record, run},
    error::StoreError,
};

/// Policies that are kept in one transaction.
const AT_ONCE: usize = 50;

/// One policy in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVersion {
    pub id: String,
    /// Its `sha256:…`.
    pub version: String,
    /// The record as the API shows it, with its source, as JSON.
    pub record: String,
}

/// Set of policies to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPolicySet<'a> {
    /// The set's `sha256:…`.
    pub version: &'a str,
    /// Name and version of each policy.
    pub members: Vec<(&'a str, &'a str)>,
    /// The other parts of the set, as JSON.
    pub files: String,
}

/// A policy set that was once in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPolicySet {
    /// The records of its policies, as JSON.
    pub records: Vec<String>,
    /// Its other parts, as JSON.
    pub files: String,
}

/// The set that last came into force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastPolicySet {
    /// Its `sha256:…`.
    pub version: String,
    /// Name and version of each policy.
    pub members: Vec<(String, String)>,
}

record!(LastPolicySet in "policy_sets", |row| version, members = row.json("policy_sets.members")?);

impl Store {
    /// Remembers that a set is in force from `now` on, and those of its policies that are new. What
    /// is known of a policy stays as it is, so this may run again. Events that want to be written
    /// meanwhile wait for a few policies, not for all.
    pub async fn keep_policy_set(
        &self,
        set: &NewPolicySet<'_>,
        policies: &[PolicyVersion],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let members = serde_json::to_string(&set.members).unwrap_or_default();
        for some in policies.chunks(AT_ONCE) {
            change!(self, installation, |tx| {
                for policy in some {
                    run!(
                        tx, "INSERT INTO policy_versions (id, version, record, kept_at) \
                         VALUES ($1, $2, $3, $4) ON CONFLICT (id, version) DO NOTHING"
                        => &policy.id, &policy.version, &policy.record, now
                    );
                }
            });
        }
        let keep = "INSERT INTO policy_sets (version, members, files, kept_at) \
                    VALUES ($1, $2, $3, $4) \
                    ON CONFLICT (version) DO UPDATE SET kept_at = EXCLUDED.kept_at";
        changed!(self, installation, keep => set.version, &members, &set.files, now);
        Ok(())
    }

    /// The set that last came into force, and name and version of each of its policies.
    #[boxed]
    pub async fn last_policy_set(&self) -> Result<Option<LastPolicySet>, StoreError> {
        let last =
            "SELECT version, members FROM policy_sets ORDER BY kept_at DESC, version LIMIT 1";
        Ok(read!(self, installation, |conn| find!(conn, last)))
    }

    /// The record of a policy in this version.
    #[boxed]
    pub async fn find_policy_version(
        &self,
        id: &str,
        version: &str,
    ) -> Result<Option<String>, StoreError> {
        Ok(read!(self, installation, |conn| {
            find!(
                conn, scalar "SELECT record FROM policy_versions WHERE id = $1 AND version = $2" =>
                id, version
            )
        }))
    }

    /// The set of this version with all its policies.
    #[boxed]
    pub async fn find_policy_set(
        &self,
        version: &str,
    ) -> Result<Option<KeptPolicySet>, StoreError> {
        let row: Option<(String, String)> = read!(self, installation, |conn| {
            find!(conn, "SELECT members, files FROM policy_sets WHERE version = $1" => version)
        });
        let Some((members, files)) = row else { return Ok(None) };
        let members: Vec<(String, String)> = serde_json::from_str(&members)
            .map_err(|_| StoreError::Corrupt("policy_sets.members"))?;
        let mut records = Vec::with_capacity(members.len());
        for (id, version) in &members {
            let record = self.find_policy_version(id, version).await?;
            records.push(record.ok_or(StoreError::Corrupt("policy_sets.members"))?);
        }
        Ok(Some(KeptPolicySet { records, files }))
    }
}
