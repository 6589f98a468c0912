//! A receiver of logs or traces that speaks OTLP over HTTP (JSON encoding).

use std::time::Duration;

use http::{HeaderMap, Method, Uri, header::RETRY_AFTER};
use serde_json::Value;

use crate::{
    Credential, Endpoint, Outbound, SettingsError,
    http_client::{ANYTHING, HttpClient, JSON, ReadError, sending},
};

/// The largest answer that is read.
const MAX_ANSWER: usize = 64 << 10;
/// The longest that a receiver may ask to be left alone.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Receiver of log records or spans.
#[derive(Debug, Clone)]
pub struct OtlpReceiver {
    client: HttpClient,
    uri: Uri,
    credential: Option<Credential>,
    timeout: Duration,
}

/// Failure to deliver a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverError {
    #[error("the receiver cannot be reached, or does not answer in time")]
    Unreachable,
    #[error("the receiver answered with status {status}")]
    Refused {
        status: u16,
        /// Requested pause.
        pause: Option<Duration>,
    },
}

impl ReceiverError {
    /// Pause before the next attempt: `own`, or the longer one that the receiver requests.
    #[must_use]
    pub fn pause(self, own: Duration) -> Duration {
        match self {
            Self::Refused { pause, .. } => pause.map_or(own, |asked| asked.max(own)),
            Self::Unreachable => own,
        }
    }

    /// Returns true if the same batch may be taken later (OTLP, "Retryable Response Codes").
    #[must_use]
    pub const fn may_pass(self) -> bool {
        match self {
            Self::Unreachable => true,
            Self::Refused { status, .. } => matches!(status, 429 | 502 | 503 | 504),
        }
    }

    /// Returns true if the receiver refused what the batch holds. Other statuses speak of the
    /// receiver, or of the address and credential that it is asked with.
    #[must_use]
    pub const fn is_about_content(self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }
}

impl OtlpReceiver {
    /// Prepares the way to `endpoint`, the full address of its `/v1/logs` or `/v1/traces`; nothing
    /// is sent yet.
    pub fn new(
        outbound: &Outbound,
        endpoint: &Endpoint,
        credential: Option<Credential>,
        timeout: Duration,
    ) -> Result<Self, SettingsError> {
        let client = outbound.client(endpoint.reach(), timeout)?;
        Ok(Self { client, uri: endpoint.uri()?, credential, timeout })
    }

    /// Sends one export request, once. Gives how many of it the receiver took for unusable,
    /// which by the protocol must not be sent again.
    pub async fn send(&self, body: Vec<u8>) -> Result<u64, ReceiverError> {
        let sending = tokio::time::timeout(self.timeout, self.exchange(body)).await;
        sending.unwrap_or(Err(ReceiverError::Unreachable))
    }

    async fn exchange(&self, body: Vec<u8>) -> Result<u64, ReceiverError> {
        let mut headers = sending(JSON, ANYTHING);
        if let Some(credential) = &self.credential {
            headers.insert(credential.name.clone(), credential.value.clone());
        }
        let sent = self.client.send(Method::POST, self.uri.clone(), headers, body);
        let answer = sent.await.map_err(|_| ReceiverError::Unreachable)?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            return Err(ReceiverError::Refused { status, pause: pause(answer.headers()) });
        }
        match answer.read(MAX_ANSWER).await {
            Ok(body) => Ok(rejected(&body)),
            // The batch was taken; a longer explanation is left unread.
            Err(ReadError::TooLarge) => Ok(0),
            Err(ReadError::Broken) => Err(ReceiverError::Unreachable),
        }
    }
}

fn pause(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

/// `rejectedLogRecords` or `rejectedSpans`: a 64-bit number, which JSON writes as a text.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let partial = answer.get("partialSuccess");
    let rejected = partial.and_then(|partial| {
        partial.get("rejectedLogRecords").or_else(|| partial.get("rejectedSpans"))
    });
    match rejected {
        Some(Value::String(number)) => count(number.trim()),
        Some(Value::Number(number)) => count(&number.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => 0,
    }
}

/// A number of records. One that is too large or unreadable stands for all of them: what is counted as delivered has
/// arrived.
fn count(number: &str) -> u64 {
    let number = number.strip_suffix(".0").unwrap_or(number);
    if number.is_empty() || number.starts_with('-') {
        0
    } else {
        number.parse().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_receiver_prolongs_the_pause_of_the_sender_and_never_shortens_it() {
        let own = Duration::from_secs(4);
        for (asked, seconds) in
            [("", 4), ("0", 4), ("3", 4), ("60", 60), ("9999999", 300), ("soon", 4)]
        {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(asked))]);
            let error = ReceiverError::Refused { status: 503, pause: pause(&headers) };
            assert_eq!(error.pause(own), Duration::from_secs(seconds), "{asked}");
        }
        assert_eq!(ReceiverError::Unreachable.pause(own), own);
    }

    #[test]
    fn what_a_receiver_refuses_for_what_it_holds_is_told_from_a_wrong_address_or_credential() {
        for (status, is_about_content) in [
            (400, true),
            (413, true),
            (422, true),
            (401, false),
            (403, false),
            (404, false),
            (405, false),
            (408, false),
            (415, false),
            (429, false),
            (500, false),
            (503, false),
        ] {
            let error = ReceiverError::Refused { status, pause: None };
            assert_eq!(error.is_about_content(), is_about_content, "{status}");
        }
        assert!(!ReceiverError::Unreachable.is_about_content());
    }

    #[test]
    fn what_a_receiver_could_not_use_is_counted() {
        for (answer, count) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedLogRecords":"7","errorMessage":"x"}}"#, 7),
            (r#"{"partialSuccess":{"rejectedLogRecords":3}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":"2"}}"#, 2),
            (r#"{"partialSuccess":{"rejectedLogRecords":"99999999999999999999999"}}"#, u64::MAX),
            (r#"{"partialSuccess":{"rejectedLogRecords":99999999999999999999999}}"#, u64::MAX),
            (r#"{"partialSuccess":{"rejectedLogRecords":2.0}}"#, 2),
            (r#"{"partialSuccess":{"rejectedLogRecords":"all"}}"#, u64::MAX),
            (r#"{"partialSuccess":{"rejectedLogRecords":"0"}}"#, 0),
            (r#"{"partialSuccess":{"rejectedLogRecords":""}}"#, 0),
            (r#"{"partialSuccess":{"rejectedLogRecords":-1}}"#, 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
