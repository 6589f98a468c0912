//! `portcullis audit`.

mod erase;
mod hold;

use clap::Subcommand;
use portcullis_core::clock::Timestamp;

use super::Failure;

#[derive(Subcommand)]
pub(super) enum Audit {
    /// Erase names, addresses and payloads from events; the proofs of the events stay valid
    Erase(erase::Erase),
    /// Keep events from being erased and pruned
    #[command(subcommand)]
    Hold(hold::Holds),
}

impl Audit {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Erase(erase) => erase.run().await,
            Self::Hold(holds) => holds.run().await,
        }
    }
}

/// A moment in RFC 3339, such as `2026-11-20T11:02:15Z`.
fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = || "a moment is written like 2026-11-20T11:02:15Z".to_owned();
    Timestamp::parse_rfc3339(text).ok_or_else(wrong)
}
