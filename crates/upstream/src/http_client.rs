//! The HTTP client of every request that goes out: hyper's own, which takes a request as it is.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use crate::reach::{Guard, Reach};

/// HTTP/2 flow-control windows of one answer and of all: answers that are left
/// waiting for their turn must not block others of the same connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// An idle connection is dropped before common servers close it (5 s), so that a call rarely meets
/// a connection that is being closed; such a call could not be sent again.
const KEEP_IDLE: Duration = Duration::from_secs(4);
/// Idle connections kept to one server.
const MAX_IDLE: usize = 256;
/// Silence after which a connection is probed, and
/// the interval of probes.
const SILENCE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;
/// Time limit for the peer's acknowledgement of sent data.
#[cfg(target_os = "linux")]
const UNHEARD: Duration = Duration::from_secs(30);

pub(crate) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("portcullis/", env!("CARGO_PKG_VERSION")));
pub(crate) const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers of a request that takes answers of these `kinds`.
pub(crate) fn accepting(kinds: HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([(USER_AGENT, AGENT), (ACCEPT, kinds)])
}

/// Headers of a request with a body of this `kind` that takes answers of the kinds `accepted`.
pub(crate) fn sending(kind: HeaderValue, accepted: HeaderValue) -> HeaderMap {
    let mut headers = accepting(accepted);
    headers.insert(CONTENT_TYPE, kind);
    headers
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// hyper's client with its pool of connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Client<Dial, Full<Bytes>>>);

impl HttpClient {
    /// **Invariant:** no redirects, no proxy, no decompression, no address that the reach does not
    /// allow, and no request twice of which anything may have been sent.
    pub(crate) fn new(reach: Reach, connect: Duration, tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Guard::new(reach));
        tcp.enforce_http(false);
        // Shared among the addresses of a name, so that one which is silent leaves time for the others.
        tcp.set_connect_timeout(Some(connect));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(SILENCE));
        tcp.set_keepalive_interval(Some(SILENCE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNHEARD));
        let mut way = HttpsConnector::from((tcp, tls.clone()));
        if reach != Reach::Private {
            way.enforce_https();
        }
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(Dial { way: Arc::new(way), patience: connect });
        Self(Arc::new(client))
    }

    /// Sends a request; the answer's body is still to be read. The caller limits the time of both.
    pub(crate) async fn send(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, Error> {
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.0.request(request).await.map(Answer)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

/// Opens connections: to whatever a name's addresses are that may be dialled, TLS included, in time.
#[derive(Clone)]
struct Dial {
    way: Arc<HttpsConnector<HttpConnector<Guard>>>,
    patience: Duration,
}

impl Service<Uri> for Dial {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut way = HttpsConnector::clone(&self.way);
        let patience = self.patience;
        Box::pin(async move {
            let connected = async {
                future::poll_fn(|cx| way.poll_ready(cx)).await?;
                way.call(uri).await
            };
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            timeout(patience, connected).await.map_err(late)?
        })
    }
}

/// An answer whose body is read piece by piece.
#[derive(Debug)]
pub(crate) struct Answer(Response<Incoming>);

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Returns true if it is a success with a body; a 204 has none.
    pub(crate) fn has_document(&self) -> bool {
        self.status().is_success() && self.status() != StatusCode::NO_CONTENT
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Declared length of its body, if any.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.0.body().size_hint().exact()
    }

    /// Returns true if its body is compressed, which no request asks for.
    pub(crate) fn is_encoded(&self) -> bool {
        let encoding = self.headers().get(CONTENT_ENCODING);
        encoding.is_some_and(|encoding| encoding != "identity")
    }

    /// The whole body. Rejects one of more than `limit` bytes.
    pub(crate) async fn read(mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        while let Some(piece) = self.chunk().await.map_err(|_| ReadError::Broken)? {
            if body.len() + piece.len() > limit {
                return Err(ReadError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The next piece of its body; `None` after the last.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.0.frame().await.transpose()? {
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }
}

/// A body that was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The connection broke.
    Broken,
    TooLarge,
}

#[cfg(test)]
mod tests {
    use hyper::{server::conn::http2, service::service_fn};
    use rustls::{
        RootCertStore, ServerConfig, crypto::aws_lc_rs::default_provider, pki_types::PrivateKeyDer,
    };
    use tokio::{
        net::TcpListener,
        time::{Instant, timeout},
    };
    use tokio_rustls::TlsAcceptor;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::clients::Clients;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn client(reach: Reach) -> HttpClient {
        Clients::new(reach, PATIENCE).unwrap().here()
    }

    async fn send_error(client: &HttpClient, url: &str) -> Error {
        let sent = client.send(Method::POST, url.parse().unwrap(), HeaderMap::new(), Vec::new());
        sent.await.unwrap_err()
    }

    #[tokio::test]
    async fn who_never_answers_the_handshake_was_not_reached() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", silent.local_addr().unwrap());
        let client = client(Reach::Named);
        let begun = Instant::now();

        let error =
            timeout(Duration::from_mins(1), send_error(&client, &url)).await.expect("an end");

        assert!(error.is_connect(), "{error:?}");
        assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn nothing_goes_out_in_the_clear_but_into_private_networks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());

        for reach in [Reach::Public, Reach::Named] {
            assert!(send_error(&client(reach), &url).await.is_connect(), "{reach:?}");
        }

        let came = timeout(PATIENCE, listener.accept()).await;
        assert!(came.is_err(), "nobody may even have dialled");
    }

    /// A server that speaks nothing but HTTP/2 on one connection and tells what it heard, and what
    /// trusts it.
    async fn server_of_http_2() -> (Uri, ClientConfig) {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut server = server.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        server.alpn_protocols = vec![b"h2".to_vec()];
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let client = client.with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
        TaskTracker::new().spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = TlsAcceptor::from(Arc::new(server)).accept(stream).await.unwrap();
            let tell = service_fn(|request: Request<Incoming>| async move {
                let heard = format!("{:?} {}", request.version(), request.uri().path());
                Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::from(heard)))
            });
            let http = http2::Builder::new(TokioExecutor::new());
            http.serve_connection(TokioIo::new(stream), tell).await
        });
        (uri, client)
    }

    #[tokio::test]
    async fn http_2_is_spoken_where_the_server_does_on_one_connection() {
        let (uri, tls) = server_of_http_2().await;
        let client = HttpClient::new(Reach::Named, 100 * PATIENCE, &tls);

        for _ in 0..2 {
            let sent = client.send(Method::POST, uri.clone(), HeaderMap::new(), vec![b'x'; 100]);
            let heard = sent.await.unwrap().chunk().await.unwrap();

            assert_eq!(heard.as_deref(), Some(&b"HTTP/2.0 /mcp"[..]));
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        for (limit, read) in [(13, Ok(b"HTTP/2.0 /mcp".to_vec())), (12, Err(ReadError::TooLarge))] {
            let (uri, tls) = server_of_http_2().await;
            let client = HttpClient::new(Reach::Named, 100 * PATIENCE, &tls);
            let sent = client.send(Method::POST, uri, HeaderMap::new(), Vec::new());

            assert_eq!(sent.await.unwrap().read(limit).await, read);
        }
    }
}
