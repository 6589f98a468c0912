//! A wire to PostgreSQL that breaks at the worst moment: as a transaction commits.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};
use tokio_util::sync::DropGuard;

use super::PostgresDatabase;
use crate::serving::{listen, until_dropped};

/// Fate of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The commit never reaches the server, which rolls back.
    NotDone,
    /// The commit is done, and the word of it never arrives.
    ReplyLost,
    /// The commit never reaches the server, and the wire stays as if nothing was wrong.
    Silence,
}

/// The wire; it is cut when this is dropped.
#[derive(Debug)]
pub struct PostgresWire {
    address: SocketAddr,
    armed: Armed,
    _carrying: DropGuard,
}

/// The statement that marks the transaction, and what becomes of it.
type Armed = Arc<Mutex<Option<(&'static str, Fault)>>>;

impl PostgresWire {
    /// A wire to the server of this database.
    pub async fn to(database: &PostgresDatabase) -> Self {
        let (listener, address) = listen().await;
        let armed = Armed::default();
        let server = database.address().to_owned();
        let carrying = until_dropped(carry_all(listener, server, Arc::clone(&armed)));
        Self { address, armed, _carrying: carrying }
    }

    /// The configuration of a gateway that uses the database over this wire, which has to read
    /// along.
    pub fn config(&self, database: &PostgresDatabase) -> String {
        let url = database.url().replace(database.address(), &self.address.to_string());
        format!("[database]\nurl = \"{url}?sslmode=disable\"\n")
    }

    /// The next transaction with a statement that begins so meets this fault as it commits.
    pub fn strike(&self, statement: &'static str, fault: Fault) {
        *self.armed.lock().expect("the wire") = Some((statement, fault));
    }

    /// Returns true if the fault was met.
    pub fn has_struck(&self) -> bool {
        self.armed.lock().expect("the wire").is_none()
    }
}

async fn carry_all(listener: TcpListener, server: String, armed: Armed) {
    // Those that are made end with this one.
    let mut wires = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = server.clone();
        let armed = Arc::clone(&armed);
        wires.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            carry(client, server, armed).await;
        });
    }
}

async fn carry(client: TcpStream, server: TcpStream, armed: Armed) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mute = Arc::new(AtomicBool::new(false));
    let wire =
        Wire { from_client, to_server, armed, mute: Arc::clone(&mute), known: HashMap::new() };
    tokio::select! {
        _ = wire.ask() => {}
        _ = answer(from_server, to_client, &mute) => {}
    }
}

/// Carries answers until the server says something that must not arrive.
async fn answer(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mute: &AtomicBool,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 || mute.load(Ordering::SeqCst) {
            return Ok(());
        }
        to.write_all(bytes.get(..count).unwrap_or_default()).await?;
    }
}

/// The way to the server.
struct Wire {
    from_client: OwnedReadHalf,
    to_server: OwnedWriteHalf,
    armed: Armed,
    mute: Arc<AtomicBool>,
    /// The prepared statements by name.
    known: HashMap<String, String>,
}

impl Wire {
    /// Carries messages (PostgreSQL protocol 3.0) until the wire breaks.
    async fn ask(mut self) -> io::Result<()> {
        self.greet().await?;
        let mut marked = false;
        loop {
            let kind = self.from_client.read_u8().await?;
            let body = self.body().await?;
            match kind {
                b'P' => {
                    let mut texts = body.split(|byte| *byte == 0).map(text);
                    let name = texts.next();
                    let sql = texts.next();
                    let sql = sql.unwrap_or_default();
                    marked |= self.marks(&sql);
                    self.known.insert(name.unwrap_or_default(), sql);
                }
                b'B' => {
                    let name = body.split(|byte| *byte == 0).nth(1).map(text);
                    let sql = self.known.get(&name.unwrap_or_default());
                    marked |= sql.is_some_and(|sql| self.marks(sql));
                }
                b'Q' if text(&body).starts_with("COMMIT") => {
                    if marked && let Some((_, fault)) = self.take() {
                        match fault {
                            Fault::NotDone => return Ok(()),
                            Fault::ReplyLost => {
                                self.mute.store(true, Ordering::SeqCst);
                                self.send(kind, &body).await?;
                            }
                            Fault::Silence => {
                                // Until the client gives up.
                                let mut sink = tokio::io::sink();
                                tokio::io::copy(&mut self.from_client, &mut sink).await?;
                                return Ok(());
                            }
                        }
                        // Ends when the server has answered.
                        std::future::pending::<()>().await;
                    }
                    marked = false;
                }
                b'Q' => marked = false,
                _ => {}
            }
            self.send(kind, &body).await?;
        }
    }

    /// Carries what comes before the first message: requests for encryption, and the start.
    async fn greet(&mut self) -> io::Result<()> {
        loop {
            let body = self.body().await?;
            let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
            self.to_server.write_u32(length).await?;
            self.to_server.write_all(&body).await?;
            // Protocol 3; anything else here asks for encryption.
            if body.starts_with(&[0, 3]) {
                return Ok(());
            }
        }
    }

    async fn body(&mut self) -> io::Result<Vec<u8>> {
        let length = self.from_client.read_u32().await?.saturating_sub(4);
        let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
        self.from_client.read_exact(&mut body).await?;
        Ok(body)
    }

    async fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
        let mut message = vec![kind];
        message.extend(length.to_be_bytes());
        message.extend(body);
        self.to_server.write_all(&message).await
    }

    fn marks(&self, sql: &str) -> bool {
        let armed = self.armed.lock().expect("the wire");
        armed.is_some_and(|(statement, _)| sql.trim_start().starts_with(statement))
    }

    fn take(&self) -> Option<(&'static str, Fault)> {
        self.armed.lock().expect("the wire").take()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
