//! Tasks (`io.modelcontextprotocol/tasks`): a client asks later for the answer of a call, here of one
//! that waits for people, as SEP-2848 drafts it.

use serde_json::{Value, json};

use super::meta;
use crate::{
    json::{JsonValue, Kind},
    refusal::Executed,
};

/// The extension by which clients ask for answers later.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The drafted extension of calls that wait for an approval.
pub const APPROVAL_EXTENSION: &str = "io.modelcontextprotocol/tool-approval";
/// Member of `_meta` in the result of a call that waited: its [`Disposition`].
pub const DISPOSITION: &str = "io.modelcontextprotocol/tool-approval-disposition";
/// Member of `_meta` of a new task: a sentence that a model may be given at once.
pub const IMMEDIATE: &str = "io.modelcontextprotocol/model-immediate-response";

/// Returns true if the client of a request declared that it asks for answers later.
#[must_use]
pub fn is_declared<'a>(meta: impl JsonValue<'a>) -> bool {
    let declared = meta.get(meta::CLIENT_CAPABILITIES);
    let extensions = declared.and_then(|declared| declared.get("extensions"));
    extensions
        .and_then(|all| all.get(EXTENSION))
        .is_some_and(|it| matches!(it.kind(), Kind::Object(_)))
}

/// The capability that a client of tasks has to declare.
#[must_use]
pub fn required() -> Value {
    json!({"extensions": {(EXTENSION): {}}})
}

crate::words! {
    /// End of a call that waited for people, in a word.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Disposition {
        /// The tool was called, once.
        Executed = "approved-executed",
        NotExecuted = "denied-not-executed",
        /// The call was made and failed; the tool may have had an effect.
        Error = "execution-error",
        /// The tool may have been called.
        Unknown = "outcome-unknown",
    }
}

impl Disposition {
    /// The disposition of a tool that answered.
    #[must_use]
    pub const fn of_result(is_error: bool) -> Self {
        if is_error { Self::Error } else { Self::Executed }
    }

    /// The disposition of a call that failed with this code.
    #[must_use]
    pub fn of_failure(code: &str, executed: Executed) -> Self {
        let was_sent = matches!(code, "upstream_error" | "upstream_timeout");
        match executed {
            Executed::Yes => Self::Executed,
            Executed::No if was_sent => Self::Error,
            Executed::No => Self::NotExecuted,
            Executed::Unknown => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn only_a_client_that_says_so_is_given_tasks() {
        for (capabilities, declared) in [
            (json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}), true),
            (json!({"extensions": {"io.modelcontextprotocol/tasks": true}}), false),
            (json!({"extensions": {"a/b": {}}}), false),
            (json!({"extensions": ["io.modelcontextprotocol/tasks"]}), false),
            (json!({"tasks": {}}), false),
            (json!({}), false),
        ] {
            let members = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
            assert_eq!(is_declared(Document::of(&members).root()), declared, "{capabilities}");
        }
        assert!(!is_declared(Document::default().root()));
    }

    #[test]
    fn a_disposition_hides_no_effect() {
        for (code, executed, word) in [
            ("policy_denied", Executed::No, "denied-not-executed"),
            ("policy_denied", Executed::Yes, "approved-executed"),
            ("upstream_error", Executed::No, "execution-error"),
            ("upstream_timeout", Executed::Unknown, "outcome-unknown"),
            ("internal_error", Executed::Unknown, "outcome-unknown"),
        ] {
            assert_eq!(Disposition::of_failure(code, executed).as_str(), word, "{code}");
        }
        assert_eq!(Disposition::of_result(true).as_str(), "execution-error");
        assert_eq!(Disposition::of_result(false).as_str(), "approved-executed");
    }
}
