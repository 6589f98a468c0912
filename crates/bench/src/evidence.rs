//! The log as evidence: events sealed and signed a second, the time to prove one event among ever
//! more, and events verified a second.
//!
//! Every event is a real one, written and sealed by the store as a node does it; the file is not
//! waited for, for what is measured is not the disk.

use std::{hint::black_box, sync::Arc, time::Duration};

use portcullis_core::{
    audit::{
        Actor, Detached, Event, EventType, Hash, Outcome, Plan, Target,
        checkpoint::Checkpoint,
        export::{FORMAT, Manifest, Range, Trailer, Verifier, event_line},
        keyring::Keyring,
        leaf_bytes, leaf_hash,
        merkle::root_of_path,
        note::SigningKey,
    },
    clock::{Clock, Timestamp},
    id::{EventId, Ids, OrgId},
    json,
    principal::Plan as OrgPlan,
    random::Random,
    refusal::Executed,
};
use portcullis_store::{
    AuditSettings, AuditWriter, CheckpointKind, DatabaseSettings, DatabaseUrl, EventFilter,
    EventOrder, EventTexts, NewEvent, Sealer, SignedNote, Store, Sync, TextColumn, UnsealedEvent,
    Visibility,
};
use serde_json::{Map, Value, json as literal};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure, Verdict,
    args::AuditArgs,
    machine::{SystemClock, SystemRandom},
    people, say, say_aside,
};

/// Events that are written at once.
pub(crate) const PORTION: u64 = 10_000;
/// Proofs that are timed at each size.
const PROOFS: u64 = 200;
/// Events that are verified at most.
const VERIFIED: u64 = 200_000;

/// Lets a log grow and prints what sealing, proving and verifying cost on the way.
pub(crate) async fn run(args: &AuditArgs) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir()?;
    let url = DatabaseUrl::sqlite(folder.path().join("portcullis.db"));
    let settings = DatabaseSettings { sync: Sync::ProcessCrash, ..DatabaseSettings::new(url) };
    let audit = AuditSettings { batch: 1024, ..AuditSettings::new("bench".to_owned()) };
    let bench = Bench::open(&settings, audit).await?;
    say(&format!("{:>12} {:>12} {:>14} {:>14}\n", "events", "sealed/s", "prove p50", "prove max"));
    let (mut size, mut next) = (0, 1_000);
    while size < args.events {
        let sealed = bench.grow(next.min(args.events) - size).await?;
        size = next.min(args.events);
        next *= 10;
        let (median, most) = bench.prove(size).await?;
        say(&format!("{size:>12} {sealed:>12.0} {median:>14?} {most:>14?}\n"));
    }
    let verified = bench.verify(size).await?;
    say(&format!("verified {verified:.0} events/s\n"));
    Ok(Verdict::Holds)
}

/// A store with an org whose log is written and signed.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) writer: AuditWriter,
    _tasks: JoinSet<()>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) org: OrgId,
    pub(crate) signer: Signer,
}

pub(crate) struct Signer {
    keys: Vec<SigningKey>,
    origin: String,
}

impl Sealer for &Signer {
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash {
        leaf_bytes(&event.core, sequence, recorded_at)
            .map_or([0; 32], |leaf| leaf_hash(leaf.as_bytes()))
    }

    fn sign(&self, _: OrgId, size: u64, root: &Hash) -> Option<SignedNote> {
        let checkpoint = Checkpoint { origin: self.origin.clone(), size, root: *root };
        let keys: Vec<&SigningKey> = self.keys.iter().collect();
        let note = checkpoint.sign(&keys).to_string();
        Some(SignedNote { note, signed_at: Timestamp::default() })
    }

    fn forked(&self, _: OrgId, signed_size: u64) {
        say_aside(&format!("the log is not that of {signed_size} events that was signed\n"));
    }
}

impl Bench {
    pub(crate) async fn open(
        settings: &DatabaseSettings,
        audit: AuditSettings,
    ) -> Result<Self, Failure> {
        let store = Store::open(settings).await?;
        let id = people::org(&store, "bench", OrgPlan::Pro).await?;
        Self::of(store, id, audit)
    }

    /// The log of an org that is there already.
    pub(crate) fn of(store: Store, id: OrgId, audit: AuditSettings) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let (writer, task) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        let origin = format!("bench.example/audit/{id}");
        let keys = Keyring::generate(&*random, clock.now()).signers(&origin)?;
        let signer = Signer { keys, origin };
        Ok(Self { store, writer, _tasks: tasks, clock, random, org: id, signer })
    }

    /// Writes so many events, and says how many of them were sealed a second.
    async fn grow(&self, mut events: u64) -> Result<f64, Failure> {
        let (all, mut spent) = (events, Duration::ZERO);
        while events > 0 {
            let portion = events.min(PORTION);
            events -= portion;
            self.write(portion).await?;
            let begun = Instant::now();
            self.store.seal(self.org, &self.signer).await?;
            spent += begun.elapsed();
        }
        Ok(rate(all, spent))
    }

    /// Writes so many events at once.
    pub(crate) async fn write(&self, events: u64) -> Result<(), Failure> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut appends = JoinSet::new();
        for _ in 0..events {
            let (writer, event) = (self.writer.clone(), self.event());
            appends.spawn(async move { writer.append(event, deadline).await });
        }
        while let Some(appended) = appends.join_next().await {
            appended??;
        }
        Ok(())
    }

    fn event(&self) -> NewEvent {
        let event =
            Event {
                id: EventId::new(Ids { clock: &*self.clock, random: &*self.random }),
                org_id: self.org,
                kind: EventType::McpInvocation,
                occurred_at: self.clock.now(),
                count: None,
                actor: Actor::system(),
                request: None,
                target: Some(Target {
                    credential: None,
                    id: Some("bench:echo".to_owned()),
                    provider_id: None,
                    kind: "mcp",
                    version: None,
                }),
                governance: None,
                outcome: Outcome::success(Executed::Yes),
                detached: Detached::default()
                    .keep("actor_name", Some("bench"), &*self.random)
                    .keep("source_ip", Some("203.0.113.7"), &*self.random),
            };
        NewEvent {
            id: event.id,
            org_id: event.org_id,
            kind: event.kind.as_str().into(),
            occurred_at: event.occurred_at,
            actor_id: None,
            via: None,
            token_id: None,
            decision: None,
            dlp_result: None,
            outcome: Some("success".into()),
            request_id: None,
            texts: EventTexts::default()
                .with(TextColumn::Target, "bench:echo")
                .with(TextColumn::Core, &event.core_json()),
            has_payload: false,
        }
    }

    /// Half of the proofs took at most the first time, all of them the second. Each is verified.
    async fn prove(&self, size: u64) -> Result<(Duration, Duration), Failure> {
        let mut times = Vec::new();
        for number in 0..PROOFS.min(size) {
            // Spread over the log, so that hardly two need the same tiles.
            let index = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size;
            let begun = Instant::now();
            let kept = self.store.find_checkpoint(self.org, CheckpointKind::Signed).await?;
            let kept = kept.ok_or("nothing was signed")?;
            let plan = Plan::inclusion(index, kept.size).ok_or("the log is too short")?;
            let path = self.store.prove(self.org, &plan).await?;
            times.push(begun.elapsed());
            black_box(root_of_path(index, kept.size, &[0; 32], &path));
        }
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        Ok((at(times.len() / 2), at(times.len().saturating_sub(1))))
    }

    /// Verifies the last events as an export, and says how many a second.
    async fn verify(&self, size: u64) -> Result<f64, Failure> {
        let first = size.saturating_sub(VERIFIED);
        let lines = self.export(first, size).await?;
        let keys = self.signer.keys.iter().map(|key| key.verifier().clone()).collect();
        let begun = Instant::now();
        let mut verifier = Verifier::new(keys, None);
        for line in &lines {
            verifier.line(line.trim_end().as_bytes())?;
        }
        let report = verifier.finish()?;
        Ok(rate(report.events, begun.elapsed()))
    }

    async fn export(&self, first: u64, size: u64) -> Result<Vec<String>, Failure> {
        let now = self.clock.now().to_string();
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            log: self.signer.origin.clone(),
            org_id: self.org.to_string(),
            created_at: now.clone(),
            from: Timestamp::default().to_string(),
            to: self.clock.now().plus_seconds(60).to_string(),
            filters: literal!({}),
            include: Vec::new(),
            complete: true,
            range: Some(Range { first, last: size - 1, checkpoint_size: size }),
            keys: Vec::new(),
        };
        let mut lines = vec![manifest.line()];
        let mut after = i64::try_from(first)?.checked_sub(1);
        while u64::try_from(lines.len())? < size - first + 1 {
            let (all, order) = (EventFilter::default(), EventOrder::Ascending);
            let page =
                self.store.list_events(self.org, Visibility::All, &all, order, after, 1000).await?;
            after = page.reached;
            for event in page.events {
                let seal = event.seal.ok_or("an event is not sealed")?;
                lines.push(event_line(&shown(&event.core, seal.sequence, seal.recorded_at)?, None));
            }
        }
        let kept = self.store.find_checkpoint(self.org, CheckpointKind::Signed).await?;
        let prefix = self.store.prove(self.org, &Plan::span(0, first)).await?;
        let note = kept.ok_or("nothing was signed")?.note;
        lines.push(Trailer { note, events: size - first, prefix, ..Trailer::default() }.line());
        Ok(lines)
    }
}

/// The record as the API shows it, without what is detached.
fn shown(core: &str, sequence: i64, at: Timestamp) -> Result<Map<String, Value>, Failure> {
    let parsed = json::parse(core.as_bytes(), json::Bounds::UPSTREAM)?;
    let Value::Object(mut record) = parsed else { return Err("an event is no object".into()) };
    record.insert("sequence".to_owned(), literal!(sequence));
    record.insert("recorded_at".to_owned(), literal!(at));
    Ok(record)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(events: u64, time: Duration) -> f64 {
    events as f64 / time.as_secs_f64().max(f64::EPSILON)
}
