//! A detector outside: a service that is shown the texts of a call or an answer and says what it
//! finds in them.
//!
//! Gets one `POST` with `{"direction": "input", "texts": [{"place": 0, "text": "…"}]}` and
//! answers `{"findings": [{"place": 0, "detector": "person_name", "start": 4, "end": 12,
//! "likelihood": "likely"}]}`; `start` and `end` count characters (Unicode scalar values).
//! Whatever else it does is a failure.

use std::{sync::Arc, time::Duration};

use http::{Method, Uri};
use portcullis_core::dlp::{Direction, Likelihood, Reported, Text};
use serde::{Deserialize, Serialize};

use crate::{
    Credential, Endpoint, Outbound, SettingsError,
    clients::Clients,
    http_client::{ANYTHING, JSON, ReadError, sending},
};

/// Settings of an external detector.
#[derive(Debug, Clone)]
pub struct DetectorSettings {
    pub endpoint: Endpoint,
    pub credential: Option<Credential>,
    /// The time for one question, everything included.
    pub timeout: Duration,
    /// The most text it is shown at once, in bytes.
    pub max_bytes: usize,
}

/// An external detector.
#[derive(Debug, Clone)]
pub struct ExternalDetector {
    clients: Arc<Clients>,
    uri: Uri,
    credential: Option<Credential>,
    timeout: Duration,
    max_bytes: usize,
}

/// Failure of an external detector. Holds nothing of the scanned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DetectorError {
    #[error("there is more text than the external detector takes")]
    TooMuch,
    #[error("the external detector did not answer in time")]
    Timeout,
    #[error("the external detector cannot be reached")]
    Unreachable,
    #[error("the external detector gave no answer of the agreed form")]
    Malformed,
}

#[derive(Serialize)]
struct Question<'a> {
    direction: &'static str,
    texts: Vec<DetectorText<'a>>,
}

#[derive(Serialize)]
struct DetectorText<'a> {
    place: u32,
    text: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectorAnswer {
    findings: Vec<DetectorFinding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectorFinding {
    place: u32,
    detector: String,
    start: usize,
    end: usize,
    #[serde(default = "likely")]
    likelihood: Likelihood,
}

const fn likely() -> Likelihood {
    Likelihood::Likely
}

/// The largest answer, in bytes, and the most findings in it.
const MAX_ANSWER: usize = 1 << 20;
const MAX_FINDINGS: usize = 10_000;

impl ExternalDetector {
    /// A detector with these settings. Nothing is sent yet.
    pub fn new(settings: DetectorSettings, outbound: &Outbound) -> Result<Self, SettingsError> {
        let DetectorSettings { endpoint, credential, timeout, max_bytes } = settings;
        let clients = outbound.clients(endpoint.reach(), timeout)?;
        Ok(Self { clients, uri: endpoint.uri()?, credential, timeout, max_bytes })
    }

    /// Asks what is in these texts. It is asked once.
    pub async fn ask(
        &self,
        direction: Direction,
        texts: &[Text],
    ) -> Result<Vec<Reported>, DetectorError> {
        if texts.iter().map(|shown| shown.text.len()).sum::<usize>() > self.max_bytes {
            return Err(DetectorError::TooMuch);
        }
        let asked = tokio::time::timeout(self.timeout, self.exchange(direction, texts)).await;
        asked.unwrap_or(Err(DetectorError::Timeout))
    }

    async fn exchange(
        &self,
        direction: Direction,
        texts: &[Text],
    ) -> Result<Vec<Reported>, DetectorError> {
        let direction = match direction {
            Direction::Input => "input",
            Direction::Output => "output",
        };
        let texts =
            texts.iter().map(|shown| DetectorText { place: shown.place, text: &shown.text });
        let question = Question { direction, texts: texts.collect() };
        let body = serde_json::to_vec(&question).map_err(|_| DetectorError::Malformed)?;
        let mut headers = sending(JSON, ANYTHING);
        if let Some(credential) = &self.credential {
            headers.insert(credential.name.clone(), credential.value.clone());
        }
        let client = self.clients.here();
        let sent = client.send(Method::POST, self.uri.clone(), headers, body);
        let answer = sent.await.map_err(|_| DetectorError::Unreachable)?;
        if !answer.status().is_success() {
            return Err(DetectorError::Malformed);
        }
        let answer = answer.read(MAX_ANSWER).await.map_err(|error| match error {
            ReadError::Broken => DetectorError::Unreachable,
            ReadError::TooLarge => DetectorError::Malformed,
        })?;
        read(&answer)
    }
}

fn read(answer: &[u8]) -> Result<Vec<Reported>, DetectorError> {
    let answer: DetectorAnswer =
        serde_json::from_slice(answer).map_err(|_| DetectorError::Malformed)?;
    if answer.findings.len() > MAX_FINDINGS {
        return Err(DetectorError::Malformed);
    }
    let reported = answer.findings.into_iter().map(|found| {
        let DetectorFinding { place, detector, start, end, likelihood } = found;
        Reported { place, detector, start, end, likelihood }
    });
    Ok(reported.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_form_is_none() {
        let good = br#"{"findings":[{"place":1,"detector":"person_name","start":0,"end":3}]}"#;
        let one = Reported {
            place: 1,
            detector: "person_name".to_owned(),
            start: 0,
            end: 3,
            likelihood: Likelihood::Likely,
        };

        assert_eq!(read(good), Ok(vec![one]));
        for bad in ["", "[]", "{}", r#"{"findings":[{}]}"#, r#"{"findings":[],"more":1}"#] {
            assert_eq!(read(bad.as_bytes()), Err(DetectorError::Malformed), "{bad}");
        }
    }
}
