//! The API of a gateway, as a command line on another machine calls it.

use std::{io, time::Duration};

use http::{HeaderValue, Method, Uri, header::AUTHORIZATION};
use portcullis_core::{oauth::PublicUrl, secret::Secret};
use tokio::time::timeout;

use crate::{
    clients::Clients,
    error::SettingsError,
    http::cause,
    http_client::{ANYTHING, Answer, HttpClient, JSON, accepting, sending},
    oauth::encoded,
    reach::Reach,
};

/// Time limit of a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of an answer with its body.
const PATIENCE: Duration = Duration::from_mins(1);
/// The largest answer: a page of events.
const MAX_BYTES: usize = 16 << 20;
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The client of one gateway. The operator of the command line named its address, so it may be in a private
/// network.
///
/// **Invariant:** every request, and the token in it, goes to this origin; redirects are not followed.
#[derive(Debug)]
pub struct ApiClient {
    client: HttpClient,
    origin: String,
}

/// Content of a request.
#[derive(Debug, Clone, Copy)]
pub enum RequestContent<'a> {
    Nothing,
    /// Nothing, for an answer of any kind.
    File,
    /// A document.
    Json(&'a str),
    /// The fields of a form.
    Form(&'a [(&'a str, &'a str)]),
}

/// An answer of the gateway, read to its end.
#[derive(Debug)]
pub struct ApiAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Cause of a request without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error("the gateway at `{origin}` cannot be reached: {cause}")]
    Unreachable { origin: String, cause: String },
    #[error("the gateway at `{0}` does not answer in time")]
    Timeout(String),
    #[error("the answer of the gateway at `{0}` breaks off, or is too large")]
    Unreadable(String),
    #[error("`{0}` is no path of a gateway")]
    Path(String),
    #[error("the token has characters that no token has")]
    Token,
    #[error("the answer cannot be written: {1}")]
    Write(io::ErrorKind, String),
}

impl ApiClient {
    /// A client of the gateway at this address. Over `https`, it trusts the certificates that the system trusts.
    pub fn new(url: &PublicUrl) -> Result<Self, SettingsError> {
        let origin = url.ascii();
        let reach = if origin.starts_with("https:") { Reach::Named } else { Reach::Private };
        Ok(Self { client: Clients::new(reach, CONNECT)?.here(), origin })
    }

    /// Address of the gateway, without a last slash.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// An address at the gateway.
    #[must_use]
    pub fn address(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        format!("{}{}", self.origin, with_query(path, parameters))
    }

    /// Sends a request to a path of the gateway, with this token as its Bearer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        token: Option<&Secret>,
        content: RequestContent<'_>,
    ) -> Result<ApiAnswer, ApiError> {
        let read = async { self.read(self.ask(method, path, token, content).await?).await };
        self.in_time(read).await
    }

    /// Gives what is at a path to `write`, piece by piece. The answer has a body only if it is no success.
    pub async fn download(
        &self,
        path: &str,
        token: &Secret,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<ApiAnswer, ApiError> {
        let asked = self.ask(Method::GET, path, Some(token), RequestContent::File);
        let mut answer = self.in_time(asked).await?;
        let status = answer.status().as_u16();
        if status != 200 {
            return self.in_time(self.read(answer)).await;
        }
        loop {
            let piece = async {
                answer.chunk().await.map_err(|_| ApiError::Unreadable(self.origin.clone()))
            };
            let Some(piece) = self.in_time(piece).await? else {
                return Ok(ApiAnswer { status, body: Vec::new() });
            };
            write(&piece).map_err(|error| ApiError::Write(error.kind(), error.to_string()))?;
        }
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let late = |_| Err(ApiError::Timeout(self.origin.clone()));
        timeout(PATIENCE, work).await.unwrap_or_else(late)
    }

    async fn read(&self, answer: Answer) -> Result<ApiAnswer, ApiError> {
        let status = answer.status().as_u16();
        let body = answer.read(MAX_BYTES).await;
        let body = body.map_err(|_| ApiError::Unreadable(self.origin.clone()))?;
        Ok(ApiAnswer { status, body })
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        token: Option<&Secret>,
        content: RequestContent<'_>,
    ) -> Result<Answer, ApiError> {
        let wrong = || ApiError::Path(path.to_owned());
        let is_path = path.starts_with('/');
        let uri = is_path.then(|| format!("{}{path}", self.origin)).ok_or_else(wrong)?;
        let uri: Uri = uri.parse().map_err(|_| wrong())?;
        let (mut headers, body) = match content {
            RequestContent::Nothing => (accepting(JSON), Vec::new()),
            RequestContent::File => (accepting(ANYTHING), Vec::new()),
            RequestContent::Json(text) => (sending(JSON, JSON), text.as_bytes().to_vec()),
            RequestContent::Form(fields) => (sending(FORM, JSON), encoded(fields).into_bytes()),
        };
        if let Some(token) = token {
            let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut bearer = bearer.map_err(|_| ApiError::Token)?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let answer = self.client.send(method, uri, headers, body).await;
        answer.map_err(|error| ApiError::Unreachable {
            origin: self.origin.clone(),
            cause: cause::of_connection(&error),
        })
    }
}

/// A path with parameters.
#[must_use]
pub fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    if parameters.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", encoded(parameters))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn client(origin: &str) -> ApiClient {
        ApiClient::new(&PublicUrl::parse(origin).unwrap()).unwrap()
    }

    async fn send_error(client: &ApiClient, path: &str) -> ApiError {
        let token = Secret::new("mcp_live_x".to_owned());
        let sent = client.send(Method::GET, path, Some(&token), RequestContent::Nothing).await;
        sent.unwrap_err()
    }

    #[tokio::test]
    async fn a_path_never_leads_to_another_host() {
        let client = client("http://127.0.0.1:9");

        for path in ["@evil.example/v1", ".evil.example/", "", "https://evil.example/", "/a b"] {
            assert_eq!(send_error(&client, path).await, ApiError::Path(path.to_owned()));
        }
        assert_eq!(client.address("/a", &[("b", "c d&")]), "http://127.0.0.1:9/a?b=c+d%26");
    }

    #[tokio::test]
    async fn an_address_without_a_listener_is_named_with_the_cause() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let origin = format!("http://{address}");

        let error = send_error(&client(&origin), "/v1/org").await;

        let cause = "nothing listens at its address and port".to_owned();
        assert_eq!(error, ApiError::Unreachable { origin, cause });
    }
}
