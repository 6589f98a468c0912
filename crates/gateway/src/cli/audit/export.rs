//! `portcullis audit export`: a file that a gateway wrote, or on a node the same lines straight to their destination.

use std::{
    error::Error,
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest;
use clap::Args;
use portcullis_app::{ExportAsk, ExportError, ExportOutput, Progress, describe_export};
use portcullis_core::{audit::export::Format, clock::Timestamp};
use portcullis_store::{ExportBeat, filters::Given};
use portcullis_upstream::ApiError;
use serde_json::{Value, json};

use super::filters::Filters;
use crate::cli::{
    api::{Api, OfOrg, OwnApi},
    installation::Installation,
    output::Failure,
    remote::{RemoteGateway, member},
};

/// Interval between two looks at an export that a gateway writes.
const LOOK: Duration = Duration::from_secs(1);

/// Writes a part of an org's log, straight from the database; a running gateway need not be asked.
/// With `--url` the gateway writes it. That it was done is recorded in the log.
#[derive(Args)]
pub(in crate::cli) struct Export {
    /// Events recorded at this time or later (RFC 3339); 30 days before `--to` by default
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Events recorded before this time; now by default
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// `jsonl` can be verified, `csv` is for spreadsheets, `ocsf` for SIEMs
    #[arg(long, default_value = "jsonl", value_parser = Format::NAMES)]
    format: String,
    /// Of `jsonl`: `payloads` (with all salts), `proofs` (one for each event); of `csv`: `bom`, for Excel
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
    of: OfOrg,
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
        let output = self.output.as_deref();
        let export = async |api: &Api<'_>| {
            ask.filters = self.filters.into_parameters(api).await?;
            match api {
                Api::Remote(gateway) => fetch(api, gateway, &ask, output).await,
                Api::Own(own) => write(own, ask, output).await,
            }
        };
        let made = self.of.ask(export).await;
        tell(&self.of.installation, output, made)
    }
}

/// Tells what was written.
fn tell(
    installation: &Installation,
    output: Option<&Path>,
    made: Result<Value, Failure>,
) -> Result<(), Failure> {
    let made = match made {
        Err(error) if output.is_none() && is_unread(&*error) => return Ok(()),
        made => made?,
    };
    if output.is_some() {
        return installation.output().record(&made, &sentence(&made));
    }
    // Standard output holds the export.
    let _ = writeln!(io::stderr().lock(), "{}", sentence(&made));
    Ok(())
}

/// Writes an export straight from the database, which takes no room in the folder of exports.
async fn write(own: &OwnApi<'_>, ask: ExportAsk, output: Option<&Path>) -> Result<Value, Failure> {
    let operator = &own.node.operator;
    let request = ask.read(operator.clock.now()).map_err(|wrong| wrong.to_string())?;
    let place = Destination::begin(output)?;
    let identity = own.node.log_identity(own.config).await?;
    let mut bar = Bar::new();
    let written = operator.export(own.org()?, identity, &request, place.out()?, &mut bar).await;
    bar.clear();
    let written = written.inspect_err(|_| place.give_up())?;
    place.finish()?;
    Ok(describe_export(&request, &written))
}

/// Lets a gateway write an export, and writes here what it wrote. Fails if its file comes with another hash.
async fn fetch(
    api: &Api<'_>,
    gateway: &RemoteGateway,
    ask: &ExportAsk,
    output: Option<&Path>,
) -> Result<Value, Failure> {
    let place = Destination::begin(output)?;
    let mut out = place.out()?.out;
    let fetched = async {
        let asked = json!({
            "from": ask.from, "to": ask.to, "format": ask.format, "filters": ask.filters,
            "include": ask.include, "since": ask.since,
        });
        let mut export = api.post("/v1/audit/export", asked).await?;
        let path = format!("/v1/audit/exports/{}", member(&export, "id")?);
        while member(&export, "status")? == "pending" {
            tokio::time::sleep(LOOK).await;
            export = api.get(&path).await?;
        }
        if member(&export, "status")? != "ready" {
            let reason = member(&export, "error").unwrap_or("it does not say why");
            return Err(format!("the gateway wrote no file: {reason}").into());
        }
        let mut hash = digest::Context::new(&digest::SHA256);
        let write = |piece: &[u8]| {
            hash.update(piece);
            out.write_all(piece)
        };
        gateway.download(&format!("{path}/file"), write).await?;
        out.flush()?;
        let hash = hash.finish();
        let hash = hash.as_ref().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        if member(&export, "sha256")? != hash {
            return Err(
                "the file that came is not the one that the gateway wrote: its SHA-256 is \
                        another"
                    .into(),
            );
        }
        Ok::<_, Failure>(export)
    };
    let export = fetched.await.inspect_err(|_| place.give_up())?;
    place.finish()?;
    Ok(export)
}

/// Returns true if the reader of the export, such as `head`, is gone: it has what it wanted.
fn is_unread(error: &(dyn Error + 'static)) -> bool {
    let kind = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(ExportError::Write(error)), _) => Some(error.kind()),
        (_, Some(ApiError::Write(kind, _))) => Some(*kind),
        _ => None,
    };
    kind == Some(io::ErrorKind::BrokenPipe)
}

fn sentence(made: &Value) -> String {
    let number = |name: &str| made.get(name).and_then(Value::as_u64).unwrap_or_default();
    let events = number("events");
    let bytes = number("bytes");
    let mismatched = number("mismatched");
    let sha256 = made.get("sha256").and_then(Value::as_str).unwrap_or_default();
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
pub(super) struct Bar {
    shown: bool,
    percent: i64,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self { shown: io::stderr().is_terminal(), percent: -1 }
    }

    /// Shows that so much of `total` is done.
    pub(super) fn show(&mut self, done: i64, total: i64) {
        let percent = done.saturating_mul(100) / total.max(1);
        if self.shown && percent != self.percent {
            self.percent = percent;
            let _ = write!(io::stderr().lock(), "\r{percent:>3} %");
        }
    }

    pub(super) fn clear(&self) {
        if self.shown && self.percent >= 0 {
            let _ = write!(io::stderr().lock(), "\r          \r");
        }
    }
}

impl Progress for Bar {
    async fn reached(&mut self, at: ExportBeat) -> Result<(), ExportError> {
        self.show(at.scanned, at.total);
        Ok(())
    }
}
