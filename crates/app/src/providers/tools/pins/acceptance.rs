//! Acceptance of a definition that waits: both of its sides, and what is recorded of it.

use portcullis_core::capability::Definition;
use portcullis_store::{Pin, Store, StoreError};
use serde_json::{Value, json};

use super::read;

/// Both sides of a tool that waits.
#[derive(Debug)]
pub struct Waiting {
    /// Accepted definition; `None` for a new tool.
    pub accepted: Option<Definition>,
    pub found: Definition,
}

impl Waiting {
    /// Both sides of the tool of this pin; `None` when nothing waits.
    pub(crate) async fn of(store: &Store, pin: &Pin) -> Result<Option<Self>, StoreError> {
        if pin.found.is_none() {
            return Ok(None);
        }
        let texts = store.definitions_of(pin.org, &pin.tool).await?;
        let accepted = texts.accepted.as_deref().and_then(read);
        Ok(texts.found.as_deref().and_then(read).map(|found| Self { accepted, found }))
    }

    /// Members in which the two differ; none of a new tool.
    pub(crate) fn changed_members(&self) -> Vec<&'static str> {
        let accepted = self.accepted.as_ref();
        accepted.map(|accepted| accepted.members_that_differ(&self.found)).unwrap_or_default()
    }
}

/// Particulars of the event that tells of an acceptance.
pub(crate) fn acceptance_details(pin: &Pin, version: &str, waiting: Option<&Waiting>) -> Value {
    json!({
        "action": "accepted",
        "old_version": pin.accepted.as_ref().map(|it| &it.version),
        "new_version": version,
        "members": waiting.map(Waiting::changed_members).unwrap_or_default(),
    })
}
