//! Conditions that a policy sets on an approval.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Conditions that a policy sets on an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalTerms {
    /// People who have to say yes, 1 to 10.
    pub approvals: u32,
    /// Groups of which an approver has to be in one.
    pub approvers: BTreeSet<String>,
    /// True if a call may be approved whose input has hidden characters; else it is denied.
    pub hidden: bool,
    /// True if approvers need a second factor.
    pub mfa: bool,
    /// Seconds to decide, and then to use the approval: 60 to 604,800.
    pub ttl_s: u32,
    /// Number of times that the call may run, 1 to 100.
    pub uses: u32,
}

const FORM: &str = "write `@require_approval(\"approvers=finance,ops ttl=15m uses=1 approvals=1 \
                    mfa=true hidden=true\")`: `approvers` names groups";

/// Shortest time to decide in seconds.
const SHORTEST: u32 = 60;
/// Longest time to decide in seconds.
const LONGEST: u32 = 7 * 86_400;

impl ApprovalTerms {
    /// Reads `approvers=finance ttl=15m uses=1 approvals=1 mfa=true hidden=true`, in any order. All but
    /// `approvers` may be missing. Says in words what is wrong.
    pub fn parse(text: &str, seconds: impl Fn(&str) -> Option<u32>) -> Result<Self, String> {
        let mut read = Self {
            approvals: 1,
            approvers: BTreeSet::new(),
            hidden: false,
            mfa: false,
            ttl_s: 15 * 60,
            uses: 1,
        };
        let mut seen = BTreeSet::new();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or(FORM)?;
            if !seen.insert(key) {
                return Err(format!("`{key}` stands twice"));
            }
            match key {
                "approvers" => read.approvers = groups(value)?,
                "ttl" => {
                    let within = |ttl: &u32| (SHORTEST..=LONGEST).contains(ttl);
                    let ttl = seconds(value).filter(within);
                    read.ttl_s = ttl.ok_or("`ttl` is 1 minute to 7 days, such as `15m`")?;
                }
                "uses" => read.uses = count(key, value, 100)?,
                "approvals" => read.approvals = count(key, value, 10)?,
                "mfa" => read.mfa = switch(key, value)?,
                "hidden" => read.hidden = switch(key, value)?,
                _ => return Err(format!("`{key}` is no setting of it; {FORM}")),
            }
        }
        if read.approvers.is_empty() { Err(FORM.to_owned()) } else { Ok(read) }
    }
}

fn groups(value: &str) -> Result<BTreeSet<String>, String> {
    let names: BTreeSet<String> =
        value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let fits = |name: &String| name.len() <= 256;
    if names.is_empty() || names.len() > 20 || !names.iter().all(fits) {
        return Err("`approvers` names 1 to 20 groups of at most 256 bytes each".to_owned());
    }
    Ok(names)
}

fn switch(key: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("`{key}` is `true` or `false`"))
}

fn count(key: &str, value: &str, most: u32) -> Result<u32, String> {
    let read = value.parse().ok().filter(|count| (1..=most).contains(count));
    read.ok_or_else(|| format!("`{key}` is a whole number from 1 to {most}"))
}
