//! Client ID Metadata Documents: what OAuth clients say of themselves at the address that is their id.
//!
//! Strangers choose the address, so it is reached through the guard, asked once, bounded in size and time, and no
//! redirect is followed.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::CACHE_CONTROL};
use portcullis_core::json::{self, Bounds};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    Outbound,
    http_client::{JSON, ReadError, accepting},
    reach::Endpoint,
};

/// The time for one document.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time until the answer begins, so that servers which never answer hold a place for a short time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 64 << 10;

/// A document, and for how many seconds its server says that it may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientDocument {
    pub document: Value,
    pub max_age: Option<i64>,
}

/// The document cannot be had. Nothing that the server sent is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoClientDocument {
    /// The server may give it another time.
    #[error("the metadata document of the client cannot be had at this moment")]
    Unreachable,
    /// The server has none at this address.
    #[error("there is no metadata document at the address of the client")]
    Absent,
}

impl Outbound {
    /// Fetches the metadata document of a client, once, within 5 seconds, of which the answer begins within 3.
    ///
    /// # Errors
    /// [`NoClientDocument`] for every status but 200, for what is larger than 64 KiB or no JSON object, and for
    /// an address that cannot be reached or may not be dialled.
    pub async fn fetch_client_document(
        &self,
        endpoint: &Endpoint,
    ) -> Result<ClientDocument, NoClientDocument> {
        let fetched = timeout(FETCH_TIMEOUT, self.client_document(endpoint)).await;
        fetched.unwrap_or(Err(NoClientDocument::Unreachable))
    }

    async fn client_document(
        &self,
        endpoint: &Endpoint,
    ) -> Result<ClientDocument, NoClientDocument> {
        let absent = || NoClientDocument::Absent;
        let client = self.client(endpoint.reach(), CONNECT_TIMEOUT).map_err(|_| absent())?;
        let uri = endpoint.uri().map_err(|_| absent())?;
        let sent = client.send(Method::GET, uri, accepting(JSON), Vec::new());
        let Ok(Ok(answer)) = timeout(HEAD_TIMEOUT, sent).await else {
            return Err(NoClientDocument::Unreachable);
        };
        let status = answer.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(NoClientDocument::Unreachable);
        }
        // The standard of these documents has every other status be an error, those of success too.
        if status != StatusCode::OK || answer.is_encoded() {
            return Err(absent());
        }
        let max_age = max_age(answer.headers());
        let body = answer.read(MAX_BYTES).await.map_err(|error| match error {
            ReadError::Broken => NoClientDocument::Unreachable,
            ReadError::TooLarge => NoClientDocument::Absent,
        })?;
        let bounds = Bounds { string_bytes: MAX_BYTES, ..Bounds::REQUEST };
        let document = json::parse(&body, bounds).ok().filter(Value::is_object);
        Ok(ClientDocument { document: document.ok_or_else(absent)?, max_age })
    }
}

/// Seconds for which an answer is fresh (RFC 9111 §5.2.2.1); 0 if it may not be kept.
fn max_age(headers: &HeaderMap) -> Option<i64> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<&str> = values.flat_map(|text| text.split(',')).map(str::trim).collect();
    if directives.iter().any(|it| it.eq_ignore_ascii_case("no-store")) {
        return Some(0);
    }
    directives.iter().find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let seconds = value.trim_matches('"').parse().ok();
        seconds.filter(|_| name.eq_ignore_ascii_case("max-age"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_that_of_the_server() {
        let age =
            |text: &str| max_age(&HeaderMap::from_iter([(CACHE_CONTROL, text.parse().unwrap())]));

        assert_eq!(age("public, max-age=600"), Some(600));
        assert_eq!(age("Max-Age=\"60\""), Some(60));
        assert_eq!(age("max-age=600, no-store"), Some(0));
        assert_eq!(age("max-age=x"), None);
        assert_eq!(max_age(&HeaderMap::new()), None);
    }
}
