//! The conversation with one child.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portcullis_core::{
    capability::ProviderSlug,
    mcp::{Era, Method},
    refusal::Executed,
};
use portcullis_lanes::offload;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Launch,
    child::{self, Group, Process},
    last_words::LastWords,
    line::{self, Line},
    liveness::Liveness,
    pending::{Arrival, Pending, Size, Ticket},
};
use crate::{
    announced::Announcer,
    error::CallError,
    forms,
    ids::Ids,
    mcp::{
        era::{Announced, Peer},
        message::{self, Incoming, Outcome},
        outgoing::{self, Outgoing},
        scan::IdScanner,
    },
    session_health::SessionHealth,
};

/// Messages that wait to be written.
const QUEUE: usize = 64;
/// The longest time for writing one message; a child that does not read that long is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for the last output of a child that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The time in which a child that closed its output ends.
const AT_ITS_END: Duration = Duration::from_millis(100);
/// The time to end by itself, and then again after a signal.
const GRACE: Duration = Duration::from_secs(2);
/// After so many messages in a row that answer nothing, the reader pauses.
const STRAYS: u32 = 256;
const STRAY_PAUSE: Duration = Duration::from_millis(20);

/// One child and what waits for it. Dropping it kills the child and all it has started.
#[derive(Debug)]
pub(super) struct Pipe {
    /// No other process has it.
    pub(super) number: u64,
    outgoing: mpsc::Sender<Frame>,
    pending: Arc<Pending>,
    liveness: Arc<Liveness>,
    era: Arc<OnceLock<Era>>,
    /// Changes of its resources are announced.
    tells_of_resources: AtomicBool,
    proved: AtomicBool,
    /// Doubt whether the child still knows us, for programs behind it may have been started anew.
    pub(super) health: SessionHealth,
    /// Set when no more input will come, so that the child ends by itself.
    finishing: CancellationToken,
    /// Set to end the child by force.
    closing: CancellationToken,
    /// Set when it has ended.
    gone: CancellationToken,
    group: Group,
    _close_on_drop: DropGuard,
}

/// A message to write, and the ticket by which it can be withdrawn.
#[derive(Debug)]
struct Frame {
    body: Vec<u8>,
    ticket: Option<Arc<Ticket>>,
}

impl Pipe {
    /// Starts the child; nothing is agreed on with it yet.
    pub(super) fn open(launch: &Launch) -> Result<Self, CallError> {
        launch.last_words.forget();
        let started = child::start(&launch.program).map_err(|why| {
            launch.last_words.not_started(why);
            CallError::connect_failed()
        })?;
        let (outgoing, frames) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let pipe = Self {
            number: launch.ids.next(),
            outgoing,
            pending: Arc::default(),
            liveness: Arc::default(),
            era: Arc::default(),
            tells_of_resources: AtomicBool::new(false),
            proved: AtomicBool::new(false),
            health: SessionHealth::default(),
            finishing: CancellationToken::new(),
            closing: closing.clone(),
            gone: CancellationToken::new(),
            group: started.process.group(),
            _close_on_drop: closing.clone().drop_guard(),
        };
        let drained = CancellationToken::new();
        let writer = Writer { frames, finishing: pipe.finishing.clone(), closing: closing.clone() };
        let reader = Reader {
            pending: pipe.pending.clone(),
            liveness: pipe.liveness.clone(),
            replies: pipe.outgoing.downgrade(),
            announcer: launch.announcer.clone(),
            max_line_bytes: launch.max_line_bytes,
            strays: 0,
        };
        let watchdog = Watchdog {
            liveness: pipe.liveness.clone(),
            outgoing: pipe.outgoing.downgrade(),
            era: pipe.era.clone(),
            ids: launch.ids.clone(),
            slug: launch.slug.clone(),
        };
        let write_timeout = launch.call_timeout.min(WRITE_TIMEOUT);
        launch.tasks.spawn(writer.run(started.stdin, write_timeout));
        launch.tasks.spawn(reader.run(started.stdout, drained.clone()));
        let errors = child::Errors::new(launch.slug.clone(), launch.last_words.clone());
        let errors = launch.tasks.spawn(errors.read(started.stderr));
        let words = launch.last_words.clone();
        let ends = Ends { closing, drained, gone: pipe.gone.clone(), words, errors };
        launch.tasks.spawn(look_after(started.process, pipe.pending.clone(), watchdog, ends));
        Ok(pipe)
    }

    /// From here on it is known what the child speaks.
    pub(super) fn set_era(&self, era: Era) {
        // Nothing else sets it.
        let _ = self.era.set(era);
    }

    pub(super) fn is_open(&self) -> bool {
        !self.closing.is_cancelled() && !self.gone.is_cancelled()
    }

    pub(super) fn era(&self) -> Era {
        self.era.get().copied().unwrap_or(Era::Modern)
    }

    /// Remembers what the child announces.
    pub(super) fn set_announced(&self, announced: Announced) {
        self.tells_of_resources.store(announced.resources, Ordering::Release);
    }

    pub(super) fn peer(&self) -> Peer {
        let tells_of_resources = self.tells_of_resources.load(Ordering::Acquire);
        Peer { number: self.number, era: self.era(), tells_of_resources }
    }

    /// Ends the child by force.
    pub(super) fn give_up(&self) {
        self.closing.cancel();
    }

    /// Remembers that the child has answered a call.
    pub(super) fn proved_itself(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_proved_itself(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }

    /// Sends the request `id` and waits for its answer until `deadline`.
    pub(super) async fn request(
        &self,
        id: u64,
        body: Vec<u8>,
        deadline: Instant,
        after: Duration,
        request: &Outgoing<'_>,
    ) -> Result<Outcome, CallError> {
        let Some((waiting, arrival)) = self.pending.add(id, request) else {
            return Err(CallError::connect_failed());
        };
        let mut sending = Sending { pipe: self, id, ticket: Arc::default(), done: false };
        let frame = Frame { body, ticket: Some(sending.ticket.clone()) };
        match timeout_at(deadline, self.outgoing.send(frame)).await {
            Err(_) => return Err(CallError::timeout(after, sending.ticket.withdraw())),
            Ok(Err(_)) => return Err(CallError::reset(sending.ticket.withdraw())),
            Ok(Ok(())) => {}
        }
        let answered = async {
            let arrival = timeout_at(deadline, arrival);
            if !request.may_be_abandoned() {
                return Ok(arrival.await);
            }
            tokio::select! {
                biased;
                arrival = arrival => Ok(arrival),
                // Dropping `sending` tells the child.
                ended = request.abandoned() => Err(ended),
            }
        };
        let Ok(arrival) = answered.await? else {
            let executed = sending.ticket.withdraw();
            // A stream has no answer before its end.
            if executed != Executed::No && request.method != Method::Listen {
                self.liveness.health();
            }
            return Err(CallError::timeout(after, executed));
        };
        sending.done = true;
        drop(waiting);
        match arrival {
            Ok(Arrival::Answer(outcome, size)) => {
                if size == Size::Large {
                    // Whatever is done with it from here on.
                    offload().await;
                }
                Ok(outcome)
            }
            Ok(Arrival::TooLarge) => Err(CallError::too_large(Executed::Yes)),
            Ok(Arrival::Garbled) => Err(CallError::protocol(Executed::Unknown)),
            Err(_) => Err(CallError::reset(sending.ticket.withdraw())),
        }
    }

    /// Sends a message without an answer, unless the queue is full.
    pub(super) fn notify(&self, body: Vec<u8>) {
        // A notification is a courtesy; a child that does not read does not get it.
        let _ = self.outgoing.try_send(Frame { body, ticket: None });
    }

    /// Lets the child end by itself, then asks its group to, then ends it.
    pub(super) async fn finish(&self) {
        self.finishing.cancel();
        if !self.ends_soon().await {
            self.group.terminate();
            if !self.ends_soon().await {
                self.closing.cancel();
                self.gone.cancelled().await;
            }
        }
    }

    /// Waits a moment for the end of the child; returns true if it came.
    pub(super) async fn ends_soon(&self) -> bool {
        timeout(GRACE, self.gone.cancelled()).await.is_ok()
    }
}

/// A request on its way. When its caller gives it up it is withdrawn, or the child is told.
struct Sending<'a> {
    pipe: &'a Pipe,
    id: u64,
    ticket: Arc<Ticket>,
    done: bool,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.done && self.ticket.withdraw() == Executed::Unknown {
            self.pipe.notify(outgoing::cancelled(self.id));
        }
    }
}

/// Writes messages, one line each.
struct Writer {
    frames: mpsc::Receiver<Frame>,
    finishing: CancellationToken,
    closing: CancellationToken,
}

impl Writer {
    async fn run<W: AsyncWrite + Unpin>(mut self, mut stdin: W, write_timeout: Duration) {
        loop {
            let frame = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                frame = self.frames.recv() => frame,
                () = self.finishing.cancelled() => return,
            };
            let Some(Frame { mut body, ticket }) = frame else { return };
            if ticket.is_some_and(|ticket| !ticket.send()) {
                continue;
            }
            body.push(b'\n');
            let write = async {
                stdin.write_all(&body).await?;
                stdin.flush().await
            };
            if !matches!(timeout(write_timeout, write).await, Ok(Ok(()))) {
                self.closing.cancel();
                return;
            }
        }
    }
}

/// Reads lines and hands answers over.
struct Reader {
    pending: Arc<Pending>,
    liveness: Arc<Liveness>,
    replies: mpsc::WeakSender<Frame>,
    announcer: Announcer,
    max_line_bytes: usize,
    strays: u32,
}

impl Reader {
    async fn run<R: AsyncRead + Unpin>(mut self, stdout: R, drained: CancellationToken) {
        let _drained = drained.drop_guard();
        let mut stdout = BufReader::with_capacity(32 << 10, stdout);
        while let Ok(Some(line)) = line::next(&mut stdout, self.max_line_bytes).await {
            let answered = match line {
                Line::Whole(line) if Size::of(line.len()) == Size::Large => {
                    // Others are served by this thread; of one child it is one line at a time.
                    let taking = spawn_blocking(move || (self.take(&line), self));
                    let Ok((answered, reader)) = taking.await else { return };
                    self = reader;
                    answered
                }
                Line::Whole(line) => self.take(&line),
                Line::TooLong(Some(id)) => self.hand_over(id, Arrival::TooLarge),
                // It may be anybody's, so everybody must learn of it.
                Line::TooLong(None) => return,
            };
            self.strays = if answered { 0 } else { self.strays + 1 };
            if self.strays >= STRAYS {
                self.strays = 0;
                tokio::time::sleep(STRAY_PAUSE).await;
            }
        }
    }

    /// Hands an answer over; says whether a caller waited for it.
    fn hand_over(&self, id: u64, arrival: Arrival) -> bool {
        self.liveness.answered();
        self.pending.hand_over(id, arrival)
    }

    /// Takes one line; says whether a caller waited for it.
    fn take(&self, line: &[u8]) -> bool {
        match message::parse(line) {
            Ok(Incoming::Answer { id: Some(id), outcome }) => {
                self.hand_over(id, Arrival::Answer(outcome, Size::of(line.len())))
            }
            Ok(Incoming::Answer { id: None, .. } | Incoming::Notification) => false,
            Ok(Incoming::Progress { token, progress }) => {
                self.pending.hear(token, progress);
                false
            }
            Ok(Incoming::ListChanged) => {
                self.announcer.lists_changed();
                false
            }
            Ok(Incoming::ResourceChanged(uri)) => {
                self.announcer.watched.changed(&uri);
                false
            }
            Ok(Incoming::Acknowledged { stream, told }) => {
                // The stream of lists was sent as a notification is.
                if stream.is_some_and(|id| self.pending.is_waiting(id)) {
                    self.announcer.watched.acknowledge(told.as_deref());
                }
                false
            }
            Ok(Incoming::Request(request)) => {
                let reply = forms::reply(&request, &self.pending.forms());
                if let (Ok(body), Some(replies)) = (reply, self.replies.upgrade()) {
                    // A child that asks faster than it reads gets no answer.
                    let _ = replies.try_send(Frame { body, ticket: None });
                }
                false
            }
            Err(message::Malformed) => match IdScanner::find(line) {
                Some(id) => self.hand_over(id, Arrival::Garbled),
                None => false,
            },
        }
    }
}

/// Watches whether a child still answers.
struct Watchdog {
    liveness: Arc<Liveness>,
    outgoing: mpsc::WeakSender<Frame>,
    era: Arc<OnceLock<Era>>,
    ids: Arc<Ids>,
    slug: ProviderSlug,
}

impl Watchdog {
    /// Returns once the child hangs.
    async fn gave_up(&self) {
        self.liveness.wait_until_lost(|| self.ask()).await;
        tracing::warn!(provider = %self.slug, "the provider's program hangs and is ended");
    }

    /// Asks what costs nothing to answer. When the queue is full the child does not even read.
    fn ask(&self) {
        let era = self.era.get().copied().unwrap_or(Era::Modern);
        let method = match era {
            Era::Modern => Method::Discover,
            Era::Legacy(_) => Method::Ping,
        };
        let body = Outgoing::bare(method).encode(self.ids.next(), era);
        if let (Ok(body), Some(outgoing)) = (body, self.outgoing.upgrade()) {
            let _ = outgoing.try_send(Frame { body, ticket: None });
        }
    }
}

/// The signals around a child's end, and what is told of it.
struct Ends {
    closing: CancellationToken,
    drained: CancellationToken,
    gone: CancellationToken,
    words: Arc<LastWords>,
    /// The reader of its error output.
    errors: JoinHandle<()>,
}

/// Waits for a child's end, or brings it about, and lets everybody know.
async fn look_after(mut process: Process, pending: Arc<Pending>, watchdog: Watchdog, ends: Ends) {
    let group = process.group();
    let by_itself = tokio::select! {
        () = ends.closing.cancelled() => false,
        // Calls that come from now on go to the next child.
        () = watchdog.gave_up() => {
            ends.closing.cancel();
            false
        }
        () = ends.drained.cancelled() => true,
        _ = process.ended() => true,
    };
    let status = if by_itself { timeout(AT_ITS_END, process.ended()).await.ok() } else { None };
    // Others of the group may hold the output open.
    group.kill();
    // With a code it ended before that, though it was found out by writing to it.
    let coded = process.ended().await.filter(|status| status.code().is_some());
    let status = status.or(coded.map(Some));
    // What cannot be read in this time was not written by the child.
    let read = async { tokio::join!(ends.drained.cancelled(), ends.errors) };
    let _ = timeout(LAST_WORDS, read).await;
    if let Some(status) = status {
        ends.words.ended(status);
    }
    ends.closing.cancel();
    pending.close();
    ends.gone.cancel();
}
