//! Telling somebody that a policy was true: best effort, and never in the way of the call.

use portcullis_core::{
    call::Ruling,
    policy::{Channel, Notice},
};

use crate::{App, Ctx, counting};

/// How the decision went that a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// The call or the answer may pass.
    Allowed,
    /// It may not.
    Denied,
}

impl Went {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allow",
            Self::Denied => "deny",
        }
    }
}

impl App {
    /// Gives the notices that policies ask for.
    pub(crate) fn give_notices(&self, ctx: &Ctx, tool: &str, ruling: &Ruling, went: Went) {
        for Notice { policy, channel } in &ruling.notices {
            counting::notice(channel);
            match channel {
                Channel::Log | Channel::Webhook(_) => tracing::info!(
                    policy = %policy.id,
                    channel = %channel,
                    org = %ctx.caller().org_id,
                    principal = %ctx.caller().principal_id,
                    tool,
                    decision = went.as_str(),
                    request = %ctx.origin.request_id,
                    "a policy asks to be told of a call"
                ),
            }
        }
    }
}
