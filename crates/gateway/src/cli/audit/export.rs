//! `portcullis audit export`.

use std::{
    error::Error,
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use portcullis_app::{
    ExportAsk, ExportError, ExportOutput, Format, Progress, Written, audit::filters::Given, told,
};
use portcullis_core::clock::Timestamp;

use super::filters::Filters;
use crate::cli::{Failure, Installation};
use portcullis_store::ExportBeat;

/// Writes a part of an org's log, straight from the database; a running gateway need not be asked.
/// That it was done is recorded in the log.
#[derive(Args)]
pub(in crate::cli) struct Export {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    /// Events recorded at this time or later (RFC 3339); 30 days before `--to` by default
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Events recorded before this time; now by default
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// `jsonl` can be verified, `csv` is for spreadsheets, `ocsf` for SIEMs
    #[arg(long, default_value = "jsonl", value_parser = Format::NAMES)]
    format: String,
    /// Of `jsonl`: `payloads` (with all salts), `proofs` (one for each event)
    #[arg(long, value_delimiter = ',')]
    include: Vec<String>,
    /// Of `jsonl`: also prove that the log of so many events, whose checkpoint you kept, is its
    /// beginning
    #[arg(long, value_name = "SIZE")]
    since: Option<u64>,
    #[command(flatten)]
    filters: Filters,
    /// The file to write, which must not exist yet; standard output by default
    #[arg(long, short)]
    output: Option<PathBuf>,
    #[command(flatten)]
    installation: Installation,
}

impl Export {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut ask = ExportAsk {
            from: time("--from", self.from.as_deref())?,
            to: time("--to", self.to.as_deref())?,
            format: Some(self.format),
            filters: Given::new(),
            include: self.include,
            since: self.since,
        };
        let installation = self.installation;
        let output = self.output;
        let config = installation.config()?;
        let office = installation.office().await?;
        let made = async {
            let org = office.shell.org_or_only(self.org.as_deref()).await?;
            ask.filters = self.filters.given(&office, org.id).await?;
            let request = ask.read(office.shell.clock.now()).map_err(|wrong| wrong.to_string())?;
            let place = Destination::begin(output.as_deref())?;
            let identity = office.log_identity(&config).await?;
            let mut bar = Bar::new();
            let written =
                office.shell.export(&org, identity, &request, place.out()?, &mut bar).await;
            bar.clear();
            let written = written.inspect_err(|_| place.give_up())?;
            place.finish()?;
            Ok::<_, Failure>((request, written))
        };
        let made = made.await;
        office.close().await;
        let (request, written) = match made {
            Err(error) if output.is_none() && is_unread(&*error) => return Ok(()),
            made => made?,
        };
        if output.is_some() {
            let text = sentence(&written);
            return installation.output().record(&told(&request, &written), &text);
        }
        // Standard output holds the export.
        let _ = writeln!(io::stderr().lock(), "{}", sentence(&written));
        Ok(())
    }
}

/// Returns true if the reader of the export, such as `head`, is gone: it has what it wanted.
fn is_unread(error: &(dyn Error + 'static)) -> bool {
    let export = error.downcast_ref();
    matches!(export, Some(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe)
}

fn sentence(written: &Written) -> String {
    let Written { events, mismatched, bytes, sha256, .. } = written;
    let marked = match mismatched {
        0 => String::new(),
        _ => format!(
            "\n{mismatched} of them are NOT what the log holds, and are marked so: see `portcullis \
             audit verify --org`"
        ),
    };
    format!("exported {events} events, {bytes} bytes, sha256 {sha256}{marked}")
}

fn time(option: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || format!("`{option}` has to be an RFC 3339 time such as 2026-11-20T11:02:15Z");
    Ok(Some(Timestamp::parse_rfc3339(text).ok_or_else(wrong)?))
}

/// Destination of the export. A file gets its name when it is whole.
struct Destination(Option<(PathBuf, PathBuf, File)>);

impl Destination {
    fn begin(output: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = output else { return Ok(Self(None)) };
        if path.exists() {
            return Err(format!("there is a file `{}` already", path.display()).into());
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let shown = part.display().to_string();
        let file = options.open(&part).map_err(|error| format!("`{shown}`: {error}"))?;
        Ok(Self(Some((path.to_owned(), part, file))))
    }

    fn out(&self) -> io::Result<ExportOutput> {
        match &self.0 {
            None => Ok(ExportOutput { out: Box::new(io::stdout()), file: None }),
            Some((_, _, file)) => {
                Ok(ExportOutput { out: Box::new(file.try_clone()?), file: Some(file.try_clone()?) })
            }
        }
    }

    fn finish(&self) -> io::Result<()> {
        let Some((path, part, file)) = &self.0 else { return Ok(()) };
        file.sync_all()?;
        fs::rename(part, path)
    }

    fn give_up(&self) {
        if let Some((_, part, _)) = &self.0 {
            let _ = fs::remove_file(part);
        }
    }
}

/// Progress, for people who watch.
struct Bar {
    shown: bool,
    percent: i64,
}

impl Bar {
    fn new() -> Self {
        Self { shown: io::stderr().is_terminal(), percent: -1 }
    }

    fn clear(&self) {
        if self.shown && self.percent >= 0 {
            let _ = write!(io::stderr().lock(), "\r          \r");
        }
    }
}

impl Progress for Bar {
    async fn reached(&mut self, at: ExportBeat) -> Result<(), ExportError> {
        let percent = at.scanned.saturating_mul(100) / at.total.max(1);
        if self.shown && percent != self.percent {
            self.percent = percent;
            let _ = write!(io::stderr().lock(), "\r{percent:>3} %");
        }
        Ok(())
    }
}
