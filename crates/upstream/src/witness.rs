//! Witnesses of transparency logs: `add-checkpoint` of <https://c2sp.org/tlog-witness>.
//!
//! A witness learns size and root of a log and nothing else. It is trusted to have seen them and
//! with nothing more: its answers are bounded in size and time, and what it signs is verified by
//! the caller.

use std::time::Duration;

use http::{Method, StatusCode, Uri};
use tokio::time::timeout;

use crate::{
    error::SettingsError,
    http_client::{ANYTHING, Answer, HttpClient, ReadError, accepting},
    outbound::Outbound,
    reach::Endpoint,
};

/// Time limit of a witness.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer; real ones have a few hundred bytes.
const MAX_BYTES: usize = 64 << 10;

/// A witness that can be asked.
#[derive(Debug, Clone)]
pub struct Witness {
    client: HttpClient,
    uri: Uri,
}

/// Answer of a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Witnessing {
    /// Its signature lines, not verified yet.
    Signed(String),
    /// The witness knows the log at another size than the proof begins with.
    Knows(u64),
}

/// Reason why a witness did not sign. Holds nothing that it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    #[error("the witness cannot be reached")]
    Unreachable,
    #[error("the witness answered with status {0}")]
    Refused(u16),
    /// The consistency proof does not convince it: the log was rewritten.
    #[error("the witness saw another log: what it signed before is not the beginning of this one")]
    Inconsistent,
    #[error("the witness answered with something else than `tlog-witness` says")]
    Malformed,
}

impl Witness {
    /// The witness whose submission prefix is `prefix`; nothing is sent yet.
    pub fn new(outbound: &Outbound, prefix: &Endpoint) -> Result<Self, SettingsError> {
        let client = outbound.client(prefix.reach(), PATIENCE)?;
        Ok(Self { client, uri: prefix.join("add-checkpoint").uri()? })
    }

    /// Asks it to sign `checkpoint`, with the proof from the tree of `old` leaves, each hash in
    /// base64.
    pub async fn add_checkpoint(
        &self,
        old: u64,
        proof: &[String],
        checkpoint: &str,
    ) -> Result<Witnessing, WitnessError> {
        let lines: String = proof.iter().flat_map(|hash| [hash.as_str(), "\n"]).collect();
        let body = format!("old {old}\n{lines}\n{checkpoint}");
        let asked = timeout(PATIENCE, self.ask(body));
        asked.await.unwrap_or(Err(WitnessError::Unreachable))
    }

    async fn ask(&self, body: String) -> Result<Witnessing, WitnessError> {
        let headers = accepting(ANYTHING);
        let sent = self.client.send(Method::POST, self.uri.clone(), headers, body.into_bytes());
        let answer = sent.await.map_err(|_| WitnessError::Unreachable)?;
        match answer.status() {
            StatusCode::CONFLICT => {
                let size = text(answer).await?;
                let size = size.strip_suffix('\n').unwrap_or(&size);
                size.parse().map(Witnessing::Knows).map_err(|_| WitnessError::Inconsistent)
            }
            StatusCode::UNPROCESSABLE_ENTITY => Err(WitnessError::Inconsistent),
            _ if answer.has_document() => Ok(Witnessing::Signed(text(answer).await?)),
            other => Err(WitnessError::Refused(other.as_u16())),
        }
    }
}

async fn text(answer: Answer) -> Result<String, WitnessError> {
    if answer.is_encoded() {
        return Err(WitnessError::Malformed);
    }
    let body = answer.read(MAX_BYTES).await.map_err(|error| match error {
        ReadError::Broken => WitnessError::Unreachable,
        ReadError::TooLarge => WitnessError::Malformed,
    })?;
    String::from_utf8(body).map_err(|_| WitnessError::Malformed)
}
