//! Connections to an SQLite file, each with a thread of its own on which its statements run.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rusqlite::{Connection, InterruptHandle};
use tokio::{
    sync::{
        OwnedSemaphorePermit, Semaphore,
        oneshot::{self, error::TryRecvError},
    },
    time::timeout,
};

use super::log::WriteTurn;
use crate::{
    db::statement::{Bound, Most, Read, Row},
    error::DriverError,
};

/// Opens a connection.
type Open = dyn Fn() -> rusqlite::Result<Connection> + Send + Sync;

/// Next task of the thread of a connection.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A number of connections to a file, opened when they are first needed. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    open: Arc<Open>,
    idle: Mutex<Vec<Worker>>,
    free: Arc<Semaphore>,
    most: u32,
    wait: Duration,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("most", &self.most).finish_non_exhaustive()
    }
}

/// A connection, by the thread that has it.
struct Worker {
    jobs: mpsc::Sender<Job>,
    interrupt: InterruptHandle,
    /// Ends with the thread.
    ended: oneshot::Receiver<()>,
}

/// A connection that is one caller's.
pub(crate) struct Session {
    worker: Option<Worker>,
    shared: Arc<Shared>,
    /// True from the beginning of a transaction on, until it is committed.
    has_begun: bool,
    _turn: Option<WriteTurn>,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

impl Connections {
    pub(crate) fn new(
        most: u32,
        wait: Duration,
        open: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static,
    ) -> Self {
        let permits = usize::try_from(most).unwrap_or(usize::MAX);
        let free = Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { open: Arc::new(open), idle: Mutex::default(), free, most, wait }))
    }

    /// A connection, as soon as one is free.
    pub(crate) async fn take(&self) -> Result<Session, DriverError> {
        self.take_in_turn(None).await
    }

    /// Begins a transaction that may write, within a turn to write.
    pub(crate) async fn begin(&self, turn: WriteTurn) -> Result<Session, DriverError> {
        let mut session = self.take_in_turn(Some(turn)).await?;
        session.begin().await?;
        Ok(session)
    }

    async fn take_in_turn(&self, turn: Option<WriteTurn>) -> Result<Session, DriverError> {
        let shared = &self.0;
        let permit = timeout(shared.wait, Arc::clone(&shared.free).acquire_owned()).await;
        let permit = permit
            .map_err(|_| DriverError::Unavailable("no connection was free in time"))?
            .map_err(|_| DriverError::Unavailable("the database is closed"))?;
        let idle = shared.idle().pop();
        let worker = match idle {
            Some(worker) => worker,
            None => Worker::start(Arc::clone(&shared.open)).await?,
        };
        let shared = Arc::clone(shared);
        let (worker, has_begun) = (Some(worker), false);
        Ok(Session { worker, shared, has_begun, _turn: turn, _permit: permit })
    }

    /// Waits for what is running and closes every connection.
    pub(crate) async fn close(&self) {
        let all = self.0.free.acquire_many(self.0.most).await;
        self.0.free.close();
        drop(all);
        let workers = std::mem::take(&mut *self.0.idle());
        for Worker { jobs, ended, .. } in workers {
            drop(jobs);
            // The other end only ever goes away.
            let _ = ended.await;
        }
    }
}

impl Shared {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    async fn start(open: Arc<Open>) -> Result<Self, DriverError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (opened, opening) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let work = move || {
            // Dropped behind the connection.
            let _ending: oneshot::Sender<()> = ending;
            let mut connection = match open() {
                Ok(connection) => connection,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok(connection.get_interrupt_handle())).is_ok() {
                for job in queue {
                    job(&mut connection);
                }
            }
        };
        thread::Builder::new()
            .name("sqlite".to_owned())
            .spawn(work)
            .map_err(|_| DriverError::Unavailable("no thread can be started"))?;
        let interrupt = opening.await.map_err(|_| ENDED)??;
        Ok(Self { jobs, interrupt, ended })
    }
}

const ENDED: DriverError = DriverError::Unavailable("the connection to SQLite has ended");

impl Session {
    /// Does something on the thread of the connection. Ends early, as an error, if the caller goes away.
    pub(crate) async fn call<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<R, DriverError> + Send + 'static,
    ) -> Result<R, DriverError> {
        let worker = self.worker.as_ref().ok_or(ENDED)?;
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            if !answer.is_closed() {
                // Who asked may have gone away.
                let _ = answer.send(work(connection));
            }
        };
        worker.jobs.send(Box::new(job)).map_err(|_| ENDED)?;
        let mut waiting = Waiting(Some(&worker.interrupt));
        let answer = answered.await;
        waiting.0 = None;
        answer.map_err(|_| ENDED)?
    }

    async fn begin(&mut self) -> Result<(), DriverError> {
        self.has_begun = true;
        let begin = |open: &mut Connection| {
            // A commit that failed may have left a transaction.
            roll_back(open)?;
            Ok(open.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?)
        };
        self.call(begin).await.map(drop)
    }

    pub(crate) async fn commit(&mut self) -> Result<(), DriverError> {
        self.call(|open| Ok(open.prepare_cached("COMMIT")?.raw_execute()?)).await?;
        self.has_begun = false;
        Ok(())
    }

    pub(crate) async fn run(
        &mut self,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<u64, DriverError> {
        let run = move |open: &mut Connection| {
            each_row(open, &sql, &values, |_| Ok(Most::All))?;
            Ok(open.changes())
        };
        self.call(run).await
    }

    pub(crate) async fn rows<T: Send + 'static>(
        &mut self,
        most: Most,
        read: Read<T>,
        sql: Cow<'static, str>,
        values: Vec<Bound>,
    ) -> Result<Vec<T>, DriverError> {
        let rows = move |open: &mut Connection| {
            let mut rows = Vec::new();
            each_row(open, &sql, &values, |row| {
                rows.push(read(row)?);
                Ok(most)
            })?;
            Ok(rows)
        };
        self.call(rows).await
    }

    pub(crate) async fn script(&mut self, sql: String) -> Result<(), DriverError> {
        self.call(move |open| Ok(open.execute_batch(&sql)?)).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        if self.has_begun {
            // In front of what the next one does with it.
            let _ = worker.jobs.send(Box::new(|open| drop(roll_back(open))));
        }
        // One whose thread has ended is let go of.
        if worker.ended.try_recv() == Err(TryRecvError::Empty) {
            self.shared.idle().push(worker);
        }
    }
}

/// A caller that waits for a statement. If the caller goes away, the statement is interrupted.
struct Waiting<'a>(Option<&'a InterruptHandle>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(interrupt) = self.0 {
            interrupt.interrupt();
        }
    }
}

fn roll_back(open: &Connection) -> rusqlite::Result<()> {
    if open.is_autocommit() { Ok(()) } else { open.execute_batch("ROLLBACK") }
}

/// Gives the rows of a statement one by one, as many as are wanted.
fn each_row(
    open: &Connection,
    sql: &str,
    values: &[Bound],
    mut take: impl FnMut(Row<'_>) -> Result<Most, DriverError>,
) -> Result<(), DriverError> {
    let mut statement = open.prepare_cached(sql)?;
    for place in 1..=statement.parameter_count() {
        // `$2` is a name to SQLite, and may stand in front of `$1`.
        let name = statement.parameter_name(place).and_then(|name| name.get(1..));
        let number = name.and_then(|name| name.parse().ok()).unwrap_or(place);
        if let Some(value) = number.checked_sub(1).and_then(|at| values.get(at)) {
            statement.raw_bind_parameter(place, value)?;
        }
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        if take(Row::Sqlite(row))? == Most::One {
            break;
        }
    }
    Ok(())
}
