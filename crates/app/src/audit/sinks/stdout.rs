//! Standard output as a sink. Its reader may stop reading, and a write that waits for that cannot
//! be cancelled: so a thread of its own writes, and shutdown does not wait for it.

use std::{
    io::{self, Write},
    sync::mpsc,
    thread,
};

use tokio::sync::oneshot;

type Job = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// The thread that writes; begun with the first line.
#[derive(Debug, Default)]
pub(super) struct Stdout(Option<mpsc::Sender<Job>>);

impl Stdout {
    /// Writes whole lines and waits until they are taken.
    pub(super) async fn write(&mut self, lines: Vec<u8>) -> io::Result<()> {
        let gone = || io::Error::other("standard output is not written any more");
        let (answer, answered) = oneshot::channel();
        let jobs = match &self.0 {
            Some(jobs) => jobs,
            None => self.0.insert(begin()?),
        };
        if jobs.send((lines, answer)).is_err() {
            self.0 = None;
            return Err(gone());
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn begin() -> io::Result<mpsc::Sender<Job>> {
    let (jobs, waiting) = mpsc::channel::<Job>();
    thread::Builder::new().name("stdout-sink".to_owned()).spawn(move || {
        while let Ok((lines, answer)) = waiting.recv() {
            let mut stdout = io::stdout().lock();
            let _ = answer.send(stdout.write_all(&lines).and_then(|()| stdout.flush()));
        }
    })?;
    Ok(jobs)
}
