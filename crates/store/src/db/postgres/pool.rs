//! The connections to PostgreSQL that statements share.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt as _, TryStreamExt as _,
    future::{join_all, try_join_all},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{RowStream, Statement, error::SqlState};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use super::tls::Tls;
use crate::{
    address::Address,
    db::statement::{Bound, Most, Read, Row},
    error::DriverError,
    settings::DatabaseSettings,
};

/// Connections opened together at first: a start sends one query after the other.
const AT_FIRST: u32 = 4;
/// Statements that a connection keeps prepared; with one more, all are prepared anew.
const STATEMENTS: usize = 256;
/// Pause in front of another attempt to connect, at first and at most.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time for the answer to a commit.
pub(crate) const LONGEST_COMMIT: Duration = Duration::from_secs(15);
/// Time for the answers to what is running when the pool is closed.
const LAST_ANSWERS: Duration = Duration::from_secs(30);

/// A number of connections, opened when they are first needed. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    address: Address,
    most: u32,
    wait: Duration,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Client>>,
    closing: CancellationToken,
    tasks: TaskTracker,
    /// The runtime of the first who asked, on which all connections live: that of another may be busy.
    runtime: OnceLock<Handle>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A connection.
struct Client {
    driver: Box<tokio_postgres::Client>,
    statements: HashMap<Cow<'static, str>, Statement>,
    /// Sends and receives; ends with the connection.
    wire: AbortOnDropHandle<()>,
}

/// A connection that is one caller's.
pub(crate) struct Session {
    client: Option<Client>,
    shared: Arc<Shared>,
    /// True if it was used before.
    was_idle: bool,
    has_begun: bool,
    /// True while an answer is waited for.
    is_asked: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// Connects.
pub(crate) async fn open(
    settings: &DatabaseSettings,
    address: &Address,
) -> Result<Pool, DriverError> {
    let most = settings.connections.max(2);
    let pool = Pool::new(address.clone(), most, settings.wait);
    drop(try_join_all((0..most.min(AT_FIRST)).map(|_| pool.take())).await?);
    Ok(pool)
}

impl Pool {
    /// Connections to this database, at most so many; a caller waits so long for one.
    pub(crate) fn new(address: Address, most: u32, wait: Duration) -> Self {
        let permits = usize::try_from(most).unwrap_or(usize::MAX);
        Self(Arc::new(Shared {
            address,
            most,
            wait,
            free: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            idle: Mutex::default(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: OnceLock::new(),
        }))
    }

    /// A connection, as soon as one is free. One that was used before may have ended since.
    pub(crate) async fn take(&self) -> Result<Session, DriverError> {
        self.in_time(self.take_any()).await
    }

    /// Opens a transaction by these statements. A connection that ended while it was idle is noticed here,
    /// before anything was done on it, and another one is taken; so connections are not tested before
    /// they are used.
    pub(crate) async fn begin(&self, statements: &str) -> Result<Session, DriverError> {
        let opening = async {
            loop {
                let mut session = self.take_any().await?;
                match session.begin(statements).await {
                    Err(error) if session.was_idle && error.has_ended() => session.discard(),
                    Err(error) => return Err(error),
                    Ok(()) => return Ok(session),
                }
            }
        };
        self.in_time(opening).await
    }

    /// When the pool begins to close; until then a connection may be kept.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.0.closing.clone()
    }

    /// Waits for what is running and closes every connection. What a server leaves without an answer ends with the
    /// process.
    pub(crate) async fn close(&self) {
        self.0.closing.cancel();
        let all = timeout(LAST_ANSWERS, self.0.free.acquire_many(self.0.most)).await;
        self.0.free.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        join_all(idle.into_iter().map(Client::close)).await;
        self.0.tasks.close();
        if timeout(self.0.wait, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("PostgreSQL left statements without an answer");
        }
    }

    async fn in_time<T>(
        &self,
        taken: impl Future<Output = Result<T, DriverError>>,
    ) -> Result<T, DriverError> {
        let late = Err(DriverError::Unavailable("no connection was free in time"));
        timeout(self.0.wait, taken).await.unwrap_or(late)
    }

    async fn take_any(&self) -> Result<Session, DriverError> {
        let permit = Arc::clone(&self.0.free).acquire_owned().await;
        let permit = permit.map_err(|_| DriverError::Unavailable("the database is closed"))?;
        let idle = self.0.usable();
        let was_idle = idle.is_some();
        let client = match idle {
            Some(client) => client,
            None => self.connect().await?,
        };
        let shared = Arc::clone(&self.0);
        let (client, permit) = (Some(client), Some(permit));
        Ok(Session { client, shared, was_idle, has_begun: false, is_asked: false, permit })
    }

    async fn connect(&self) -> Result<Client, DriverError> {
        let mut pause = PAUSE;
        let end = Instant::now() + self.0.wait * 4 / 5;
        loop {
            match self.0.connect().await {
                // It starts, or has no place at this moment.
                Err(error) if error.may_pass() && Instant::now() < end => sleep(pause).await,
                connected => return connected,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle connection, unless it is known to have ended.
    fn usable(&self) -> Option<Client> {
        let mut idle = self.idle();
        idle.retain(|client| !client.driver.is_closed());
        idle.pop()
    }

    async fn connect(&self) -> Result<Client, DriverError> {
        let runtime = self.runtime.get_or_init(Handle::current);
        let address = self.address.clone();
        let tasks = self.tasks.clone();
        // What a node that is gone has locked is free again after a minute. The planner takes recursive statements
        // to be long; compiling one takes half a second, running it some ms. A pooler refuses these at the start.
        let settings = format!(
            "SET lock_timeout = {}; SET idle_in_transaction_session_timeout = '60s'; SET jit = off",
            self.wait.as_millis()
        );
        let connecting = async move {
            let tls = Tls::new(&address.tls)?;
            let (client, wire) = address.config.connect(tls).await?;
            let wire = tasks.spawn(async move {
                if let Err(error) = wire.await {
                    tracing::debug!(error = %DriverError::from(error), "a connection to PostgreSQL ended");
                }
            });
            let (driver, wire) = (Box::new(client), AbortOnDropHandle::new(wire));
            driver.batch_execute(&settings).await?;
            Ok(Client { driver, statements: HashMap::new(), wire })
        };
        let connecting = AbortOnDropHandle::new(self.tasks.spawn_on(connecting, runtime));
        connecting.await.map_err(|_| ENDED)?
    }
}

const ENDED: DriverError = DriverError::Unavailable("the connection to PostgreSQL has ended");

impl Client {
    /// Ends the connection as the server expects it.
    async fn close(self) {
        let Self { driver, statements, wire } = self;
        drop((statements, driver));
        let _ = timeout(LONGEST_PAUSE, wire).await;
    }

    async fn prepare(
        &mut self,
        sql: Cow<'static, str>,
        values: &[Bound],
    ) -> Result<Statement, tokio_postgres::Error> {
        if let Some(known) = self.statements.get(&sql) {
            return Ok(known.clone());
        }
        let kinds: Vec<_> = values.iter().map(Bound::kind).collect();
        let statement = self.driver.prepare_typed(&sql, &kinds).await?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    async fn run(
        &mut self,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepare(sql, &values).await?;
        self.driver.execute_raw(&statement, values).await
    }
}

impl Session {
    /// True if it was used before.
    pub(crate) const fn was_idle(&self) -> bool {
        self.was_idle
    }

    pub(crate) async fn begin(&mut self, statements: &str) -> Result<(), DriverError> {
        self.has_begun = true;
        self.script(statements).await
    }

    /// A server that leaves it without an answer may have done it or not.
    pub(crate) async fn commit(&mut self) -> Result<(), DriverError> {
        let silent = Err(DriverError::Unavailable("PostgreSQL does not answer"));
        timeout(LONGEST_COMMIT, self.script("COMMIT")).await.unwrap_or(silent)?;
        self.has_begun = false;
        Ok(())
    }

    /// Ends a transaction that failed.
    pub(crate) async fn roll_back(&mut self) -> Result<(), DriverError> {
        self.script("ROLLBACK").await?;
        self.has_begun = false;
        Ok(())
    }

    /// Waits for an answer of the server.
    pub(crate) async fn ping(&mut self) -> Result<(), DriverError> {
        let client = self.claim_client()?;
        let answer = client.driver.check_connection().await;
        self.is_asked = false;
        Ok(answer?)
    }

    pub(crate) async fn run(
        &mut self,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<u64, DriverError> {
        let client = self.claim_client()?;
        let answer = client.run(sql, values).await.map_err(DriverError::from);
        self.answered(&answer);
        answer
    }

    pub(crate) async fn rows<T>(
        &mut self,
        most: Most,
        read: Read<T>,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<Vec<T>, DriverError> {
        let client = self.claim_client()?;
        let answer = async {
            let statement = client.prepare(sql, &values).await?;
            collect(client.driver.query_raw(&statement, values).await?, most, read).await
        };
        let answer = answer.await;
        self.answered(&answer);
        answer
    }

    pub(crate) async fn find_by_value<T>(
        &mut self,
        read: Read<T>,
        sql: &str,
        values: Vec<Bound>,
    ) -> Result<Option<T>, DriverError> {
        let client = self.claim_client()?;
        let answer = async {
            let typed = values.into_iter().map(|value| {
                let kind = value.kind();
                (value, kind)
            });
            collect(client.driver.query_typed_raw(sql, typed).await?, Most::One, read).await
        };
        let answer = answer.await;
        self.is_asked = false;
        Ok(answer?.pop())
    }

    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), DriverError> {
        let client = self.claim_client()?;
        let answer = client.driver.batch_execute(sql).await;
        self.is_asked = false;
        Ok(answer?)
    }

    /// Cuts the connection off.
    pub(crate) fn discard(mut self) {
        self.client = None;
    }

    /// Cuts the connection off if its prepared statements are no longer those of the server.
    fn answered<T>(&mut self, answer: &Result<T, DriverError>) {
        self.is_asked = false;
        if answer.as_ref().is_err_and(DriverError::is_of_stale_statement) {
            self.client = None;
        }
    }

    fn claim_client(&mut self) -> Result<&mut Client, DriverError> {
        self.is_asked = true;
        self.client.as_mut().ok_or(ENDED)
    }
}

async fn collect<T>(rows: RowStream, most: Most, read: Read<T>) -> Result<Vec<T>, DriverError> {
    let mut rows = pin!(rows);
    let mut all = Vec::new();
    while let Some(row) = rows.try_next().await? {
        all.push(read(Row::Postgres(&row))?);
        if most == Most::One {
            break;
        }
    }
    Ok(all)
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if client.driver.is_closed() {
            return;
        }
        if self.is_asked
            && let Some(runtime) = self.shared.runtime.get()
        {
            let shared = Arc::clone(&self.shared);
            let permit = self.permit.take();
            self.shared.tasks.spawn_on(end_early(client, shared, permit), runtime);
            return;
        }
        if self.has_begun {
            // It is sent now, and answered in front of what the next one asks.
            let _ = client.driver.batch_execute("ROLLBACK").now_or_never();
        }
        self.shared.idle().push(client);
    }
}

/// Waits for a statement whose caller has gone away, and stops one that takes long.
async fn end_early(client: Client, shared: Arc<Shared>, permit: Option<OwnedSemaphorePermit>) {
    let rolled_back = timeout(shared.wait, client.driver.batch_execute("ROLLBACK")).await;
    match rolled_back {
        Ok(Ok(())) => shared.idle().push(client),
        Ok(Err(_)) => {}
        Err(_) => {
            if let Ok(tls) = Tls::new(&shared.address.tls) {
                let cancelling = client.driver.cancel_token();
                let _ = timeout(shared.wait, cancelling.cancel_query(tls)).await;
            }
        }
    }
    drop(permit);
}

impl DriverError {
    /// Returns true if the connection is gone: cut, or ended by a server that restarts.
    pub(crate) fn has_ended(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        let of_server = error.as_db_error().map(|error| error.code().code());
        of_server.is_none_or(|code| code.starts_with("57P"))
    }

    /// Returns true if a lock was waited for too long.
    pub(crate) fn is_locked_out(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// A pooler has forgotten the prepared statement, or a table was changed.
    fn is_of_stale_statement(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        let stale = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::FEATURE_NOT_SUPPORTED];
        error.code().is_some_and(|code| stale.contains(code))
    }

    /// Returns true if another attempt to connect may succeed in a moment.
    fn may_pass(&self) -> bool {
        let Self::Postgres(error) = self else { return false };
        if let Some(code) = error.code() {
            return [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW].contains(code);
        }
        let source = std::error::Error::source(error);
        let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    }
}
