//! Resolving a name once, and dialling nothing but what was checked.

use std::{io, net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Reach;

/// Resolves names for one client and drops the addresses it may not dial. The connection goes to
/// one of those that are left: what the name answers later is not asked for.
#[derive(Debug)]
pub(crate) struct Guard<L = System> {
    reach: Reach,
    lookup: Arc<L>,
}

/// Who is asked for the addresses of a name.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// Every address of the name.
    fn find(&self, name: Name) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The resolver of the machine.
#[derive(Debug)]
pub(crate) struct System;

impl Lookup for System {
    async fn find(&self, name: Name) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect())
    }
}

impl Guard {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, lookup: Arc::new(System) }
    }
}

impl<L: Lookup> Resolve for Guard<L> {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, lookup) = (self.reach, Arc::clone(&self.lookup));
        Box::pin(async move {
            let mut allowed = lookup.find(name).await?;
            allowed.retain(|address| reach.allows(address.ip()));
            if allowed.is_empty() {
                let refused = "the name has no address that may be dialled";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use reqwest::Client;
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
        async fn find(&self, _: Name) -> io::Result<Vec<SocketAddr>> {
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

    fn client(reach: Reach, answers: &[&[&str]]) -> (Client, Arc<AtomicUsize>) {
        let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
        let answers = answers.iter().map(|all| all.iter().map(address).collect()).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let lookup = Arc::new(Rebinding { answers, asked: Arc::clone(&asked) });
        let guard = Arc::new(Guard { reach, lookup });
        let client = Client::builder().tls_certs_only([]).no_proxy().dns_resolver(guard);
        (client.build().unwrap(), asked)
    }

    #[tokio::test]
    async fn the_connection_goes_to_the_address_that_was_checked() {
        let (address, served) = server().await;
        // Checked, the name leads to loopback; asked once more, it leads to the metadata service.
        let (client, asked) =
            client(Reach::Private, &[&["127.0.0.1"], &["169.254.169.254"], &["8.8.8.8"]]);
        let url = format!("http://rebind.test:{}/", address.port());

        let first = client.get(&url).send().await.unwrap();
        assert_eq!(first.text().await.unwrap(), "ok");
        assert_eq!(asked.load(Ordering::Acquire), 1, "one look, one connection");

        for _ in 0..2 {
            let error = client.get(&url).send().await.unwrap_err();
            assert!(error.is_connect(), "{error:?}");
        }
        assert_eq!(served.load(Ordering::Acquire), 1);
        assert_eq!(asked.load(Ordering::Acquire), 3);
    }

    #[tokio::test]
    async fn of_many_addresses_only_those_that_may_be_dialled_are() {
        let (address, served) = server().await;
        let mixed = ["169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "127.0.0.1"];
        let (client, _) = client(Reach::Private, &[&mixed]);
        let url = format!("http://mixed.test:{}/", address.port());

        let answer = client.get(&url).send().await.unwrap();

        assert_eq!(answer.text().await.unwrap(), "ok");
        assert_eq!(served.load(Ordering::Acquire), 1);
    }

    #[tokio::test]
    async fn a_public_name_that_turns_private_is_refused() {
        let (address, served) = server().await;
        for turned in ["127.0.0.1", "10.0.0.1", "fd00::1", "::1", "100.64.0.1"] {
            let (client, _) = client(Reach::Public, &[&[turned]]);
            let url = format!("http://turned.test:{}/", address.port());

            assert!(client.get(&url).send().await.unwrap_err().is_connect(), "{turned}");
        }
        assert_eq!(served.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_has_no_public_address() {
        let name = |text: &str| text.parse::<Name>().unwrap();

        assert!(Guard::new(Reach::Public).resolve(name("localhost")).await.is_err());
        assert!(Guard::new(Reach::Private).resolve(name("localhost")).await.is_ok());
    }
}
