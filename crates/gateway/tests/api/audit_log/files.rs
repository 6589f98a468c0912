//! Exports made of what the API and the store hold, written to files to be tampered with.

use portcullis_core::{
    audit::{
        Plan,
        checkpoint::Checkpoint,
        export::{Consistency, FORMAT, Manifest, Range, Trailer, event_line},
        merkle::Hash,
        note::Note,
    },
    id::OrgId,
};
use portcullis_store::Store;
use serde_json::value::RawValue;

use crate::prelude::*;

/// A log, and files of it.
pub(crate) struct Files {
    store: Store,
    org: OrgId,
    /// The events as the API shows them, with salts.
    pub(crate) events: Vec<Box<RawValue>>,
    /// The signed checkpoint that covers them.
    pub(crate) note: String,
    pub(crate) checkpoint: Checkpoint,
    folder: PathBuf,
}

impl Files {
    /// Everything in the log of this principal's org.
    pub(crate) async fn of(gateway: &Gateway, who: &Principal) -> Self {
        let note = gateway.get(who, "/v1/audit/checkpoint").await.text;
        let checkpoint = Checkpoint::of(&Note::parse(&note).unwrap()).unwrap();
        let mut events = Vec::new();
        let mut cursor = String::new();
        while events.len() < usize::try_from(checkpoint.size).unwrap() {
            let path = format!("/v1/audit/events?order=asc&limit=200{cursor}");
            let page = gateway.get(who, &path).await;
            for item in page.at("/data/items").as_array().unwrap() {
                let id = item["id"].as_str().unwrap();
                let answer = gateway.get(who, &format!("/v1/audit/events/{id}")).await;
                // As it was written, numbers and all.
                let text = answer.text.strip_prefix("{\"data\":").unwrap();
                let end = text.rfind(",\"meta\":").unwrap();
                events.push(RawValue::from_string(text[..end].to_owned()).unwrap());
            }
            let next = page.at("/meta/pagination/next_cursor");
            cursor = next.as_str().map_or_else(String::new, |next| format!("&cursor={next}"));
        }
        events.truncate(usize::try_from(checkpoint.size).unwrap());
        let store = store(gateway).await;
        let org = who.org.parse().unwrap();
        Self { store, org, events, note, checkpoint, folder: gateway.folder().to_owned() }
    }

    /// The hashes of a plan, from the stored tree.
    pub(crate) async fn hashes(&self, plan: Plan) -> Vec<Hash> {
        self.store.prove(self.org, &plan).await.unwrap()
    }

    pub(crate) fn manifest(&self, first: u64, last: u64) -> Manifest {
        let time = |at: u64| {
            let event: Value = serde_json::from_str(self.event(at).get()).unwrap();
            event["recorded_at"].as_str().unwrap().to_owned()
        };
        Manifest {
            format: FORMAT.to_owned(),
            log: self.checkpoint.origin.clone(),
            org_id: self.org.to_string(),
            created_at: time(last),
            from: time(first),
            to: "2100-01-01T00:00:00.000Z".to_owned(),
            filters: json!({}),
            include: Vec::new(),
            complete: true,
            range: Some(Range { first, last, checkpoint_size: self.checkpoint.size }),
            keys: Vec::new(),
        }
    }

    pub(crate) async fn trailer(&self, first: u64, last: u64) -> Trailer {
        Trailer {
            note: self.note.clone(),
            events: last + 1 - first,
            prefix: self.hashes(Plan::span(0, first)).await,
            suffix: self.hashes(Plan::span(last + 1, self.checkpoint.size)).await,
            ..Trailer::default()
        }
    }

    pub(crate) fn event(&self, at: u64) -> &RawValue {
        &self.events[usize::try_from(at).unwrap()]
    }

    /// The lines of a complete file.
    pub(crate) async fn complete(&self, first: u64, last: u64) -> Vec<String> {
        let mut lines = vec![self.manifest(first, last).line()];
        lines.extend((first..=last).map(|at| event_line(&self.event(at), None)));
        lines.push(self.trailer(first, last).await.line());
        lines
    }

    /// The lines of a complete file, with the proof that it continues the tree of `since` leaves.
    pub(crate) async fn since(&self, first: u64, last: u64, since: u64) -> Vec<String> {
        let mut lines = self.complete(first, last).await;
        let plan = Plan::consistency(since, self.checkpoint.size).unwrap();
        let consistency = Some(Consistency { since, hashes: self.hashes(plan).await });
        let trailer = Trailer { consistency, ..self.trailer(first, last).await };
        *lines.last_mut().unwrap() = trailer.line();
        lines
    }

    /// The lines of a filtered file: every third event, each with its path.
    pub(crate) async fn filtered(&self) -> Vec<String> {
        let last = self.checkpoint.size - 1;
        let manifest = Manifest {
            complete: false,
            filters: json!({"type": ["mcp.invocation"]}),
            ..self.manifest(0, last)
        };
        let mut lines = vec![manifest.line()];
        let mut events = 0;
        for at in (0..=last).step_by(3) {
            let path = self.hashes(Plan::inclusion(at, last + 1).unwrap()).await;
            lines.push(event_line(&self.event(at), Some(&path)));
            events += 1;
        }
        lines.push(Trailer { events, note: self.note.clone(), ..Trailer::default() }.line());
        lines
    }

    /// Writes lines to a file of this name.
    pub(crate) fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        write(&self.folder.join(name), &lines.concat())
    }
}

pub(crate) fn write(path: &Path, text: &str) -> PathBuf {
    fs::write(path, text).unwrap();
    path.to_owned()
}
