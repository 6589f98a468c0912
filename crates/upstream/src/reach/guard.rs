//! Resolving a name once, and dialling nothing but what was checked.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns;
use tower_service::Service;

use super::Reach;

/// Resolves names for one client and drops the addresses it may not dial. The connection goes to
/// one of those that are left: what the name answers later is not asked for.
#[derive(Debug)]
pub(crate) struct Guard<L = System> {
    reach: Reach,
    lookup: Arc<L>,
}

/// Resolver of names.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// Every address of the name.
    fn find(&self, name: &str) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The resolver of the machine.
#[derive(Debug)]
pub(crate) struct System;

impl Lookup for System {
    async fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.collect())
    }
}

impl Guard {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, lookup: Arc::new(System) }
    }
}

impl<L> Clone for Guard<L> {
    fn clone(&self) -> Self {
        Self { reach: self.reach, lookup: Arc::clone(&self.lookup) }
    }
}

impl<L: Lookup> Guard<L> {
    /// The addresses of a name that may be dialled, of which there is one at least.
    async fn allowed(self, name: dns::Name) -> io::Result<vec::IntoIter<SocketAddr>> {
        let mut allowed = self.lookup.find(name.as_str()).await?;
        allowed.retain(|address| self.reach.allows(address.ip()));
        if allowed.is_empty() {
            let refused = "the name has no address that may be dialled";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
        }
        Ok(allowed.into_iter())
    }
}

impl<L: Lookup> Service<dns::Name> for Guard<L> {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: dns::Name) -> Self::Future {
        Box::pin(self.clone().allowed(name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::{Response, Uri};
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper_util::{
        client::legacy::{Client, connect::HttpConnector},
        rt::TokioExecutor,
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// A name server that answers with these addresses in turn; the last answer stays.
    struct Rebinding {
        answers: Vec<Vec<SocketAddr>>,
        asked: Arc<AtomicUsize>,
    }

    impl Lookup for Rebinding {
        async fn find(&self, _: &str) -> io::Result<Vec<SocketAddr>> {
            let turn = self.asked.fetch_add(1, Ordering::AcqRel);
            Ok(self.answers.get(turn).or(self.answers.last()).cloned().unwrap_or_default())
        }
    }

    /// A server on loopback that answers one request per connection; the addresses of its port.
    async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        tokio_util::task::TaskTracker::new().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::AcqRel);
                let _ = stream.read(&mut [0; 4096]).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                let _ = stream.write_all(answer).await;
            }
        });
        (address, served)
    }

    fn guard(reach: Reach, answers: &[&[&str]]) -> (Guard<Rebinding>, Arc<AtomicUsize>) {
        let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
        let answers = answers.iter().map(|all| all.iter().map(address).collect()).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let lookup = Arc::new(Rebinding { answers, asked: Arc::clone(&asked) });
        (Guard { reach, lookup }, asked)
    }

    type Guarded = Client<HttpConnector<Guard<Rebinding>>, Full<Bytes>>;

    fn client(reach: Reach, answers: &[&[&str]]) -> (Guarded, Arc<AtomicUsize>) {
        let (guard, asked) = guard(reach, answers);
        let connector = HttpConnector::new_with_resolver(guard);
        (Client::builder(TokioExecutor::new()).build(connector), asked)
    }

    fn address_of(name: &str, address: SocketAddr) -> Uri {
        format!("http://{name}:{}/", address.port()).parse().unwrap()
    }

    async fn text(answer: Response<Incoming>) -> Bytes {
        answer.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn the_connection_goes_to_the_address_that_was_checked() {
        let (address, served) = server().await;
        // Checked, the name leads to loopback; asked once more, it leads to the metadata service.
        let (client, asked) =
            client(Reach::Private, &[&["127.0.0.1"], &["169.254.169.254"], &["8.8.8.8"]]);
        let uri = address_of("rebind.test", address);

        let first = client.get(uri.clone()).await.unwrap();
        assert_eq!(text(first).await, "ok");
        assert_eq!(asked.load(Ordering::Acquire), 1, "one look, one connection");

        for _ in 0..2 {
            let error = client.get(uri.clone()).await.unwrap_err();
            assert!(error.is_connect(), "{error:?}");
        }
        assert_eq!(served.load(Ordering::Acquire), 1);
        assert_eq!(asked.load(Ordering::Acquire), 3);
    }

    #[tokio::test]
    async fn so_does_a_bare_connection() {
        let (address, _) = server().await;
        let (guard, asked) =
            guard(Reach::Private, &[&["127.0.0.1", "8.8.8.8"], &["169.254.169.254"], &["8.8.8.8"]]);
        let mut connector = HttpConnector::new_with_resolver(guard);
        let uri = address_of("rebind.test", address);

        let first = connector.call(uri.clone()).await.unwrap();
        assert_eq!(first.inner().peer_addr().unwrap(), address);

        for _ in 0..2 {
            let error = connector.call(uri.clone()).await.unwrap_err();
            assert!(error.to_string().contains("dns"), "{error:?}");
        }
        assert_eq!(asked.load(Ordering::Acquire), 3);
    }

    #[tokio::test]
    async fn of_many_addresses_only_those_that_may_be_dialled_are() {
        let (address, served) = server().await;
        let mixed = ["169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "127.0.0.1"];
        let (client, _) = client(Reach::Private, &[&mixed]);

        let answer = client.get(address_of("mixed.test", address)).await.unwrap();

        assert_eq!(text(answer).await, "ok");
        assert_eq!(served.load(Ordering::Acquire), 1);
    }

    #[tokio::test]
    async fn a_public_name_that_turns_private_is_refused() {
        let (address, served) = server().await;
        for turned in ["127.0.0.1", "10.0.0.1", "fd00::1", "::1", "100.64.0.1"] {
            let (client, _) = client(Reach::Public, &[&[turned]]);

            let error = client.get(address_of("turned.test", address)).await.unwrap_err();

            assert!(error.is_connect(), "{turned}");
        }
        assert_eq!(served.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_has_no_public_address() {
        let name: dns::Name = "localhost".parse().unwrap();

        assert!(Guard::new(Reach::Public).call(name.clone()).await.is_err());
        assert!(Guard::new(Reach::Private).call(name).await.is_ok());
    }
}
