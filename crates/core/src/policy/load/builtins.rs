//! Policies that are part of Portcullis.

use crate::policy::terms::Severity;

/// Denies what no policy permits.
pub const DEFAULT_DENY: &str = "default-deny";
/// Denies what could not be decided.
pub const POLICY_ERROR: &str = "policy-error";
/// Denies what a token's scopes do not cover.
pub const TOKEN_SCOPES: &str = "token-scopes";
/// Denies calls of tools whose definition changed.
pub const TOOL_PINNING: &str = "tool-pinning";
/// Decides about findings of DLP when no policy says otherwise.
pub const DLP_DEFAULT: &str = "dlp-default";

/// A policy that is part of Portcullis.
pub(in crate::policy) struct Builtin {
    pub(in crate::policy) id: &'static str,
    pub(in crate::policy) title: &'static str,
    pub(in crate::policy) description: &'static str,
    pub(in crate::policy) reason: &'static str,
    pub(in crate::policy) severity: Severity,
}

/// Ordered by name.
pub(in crate::policy) const BUILTINS: [Builtin; 5] = [
    Builtin {
        id: DEFAULT_DENY,
        title: "What no policy permits is denied",
        description: "Decides when no active permit is true for a call.",
        reason: "No policy permits this call",
        severity: Severity::Medium,
    },
    Builtin {
        id: DLP_DEFAULT,
        title: "What DLP does by default",
        description: "Blocks, masks or flags findings by category and direction, as configured, \
                      where no policy says otherwise.",
        reason: "Sensitive data must not pass",
        severity: Severity::High,
    },
    Builtin {
        id: POLICY_ERROR,
        title: "What cannot be decided is denied",
        description: "Decides when a call cannot be shown to the policies, or a forbid that may \
                      apply no longer fits the tool.",
        reason: "The policies could not be evaluated",
        severity: Severity::High,
    },
    Builtin {
        id: TOKEN_SCOPES,
        title: "A token does only what its scopes cover",
        description: "Decides when the token lacks the scope that an endpoint needs.",
        reason: "The token lacks a scope",
        severity: Severity::Medium,
    },
    Builtin {
        id: TOOL_PINNING,
        title: "A tool that changed waits for review",
        description: "Decides when the upstream changed a tool's definition after it was accepted.",
        reason: "The tool's definition changed and waits for review",
        severity: Severity::High,
    },
];
