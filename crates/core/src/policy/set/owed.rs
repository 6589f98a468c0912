//! Obligations of single policies, for callers outside of a call.

use std::collections::BTreeSet;

use super::PolicySet;
use crate::{
    policy::{
        load::obligations::{Channel, Owed},
        terms::Status,
    },
    tool::Tool,
};

impl PolicySet {
    /// Channel of the notices of the policy of this name, if it gives any.
    #[must_use]
    pub fn channel_of(&self, id: &str) -> Option<&Channel> {
        self.owed_of(id)?.notify.as_ref()
    }

    /// Groups that approve calls for the policy of this name; `None` if it asks for no approval.
    #[must_use]
    pub fn approvers_of(&self, id: &str) -> Option<&BTreeSet<String>> {
        Some(&self.owed_of(id)?.approval.as_deref()?.approvers)
    }

    /// True if a policy that is active can ask for approvals of calls of this tool.
    #[must_use]
    pub fn can_ask_for_approvals(&self, tool: &Tool) -> bool {
        self.policies.iter().any(|placed| {
            let annotations = &placed.policy.annotations;
            let asks = annotations.status == Status::Active && annotations.owed.approval.is_some();
            asks && self.applies_to_tool(&placed.policy.id, tool)
        })
    }

    fn owed_of(&self, id: &str) -> Option<&Owed> {
        Some(&self.policies.find(id)?.policy.annotations.owed)
    }
}
