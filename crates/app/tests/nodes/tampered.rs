//! The log of an org after its database was tampered with: whatever a verifier with an older
//! checkpoint could notice is noticed.

mod changes;
mod copies;
mod removals;

use std::{cell::Cell, collections::BTreeMap, fs, path::PathBuf};

use portcullis_core::audit::{
    export::{Fault, Since},
    keyring::Keyring,
};
use portcullis_store::{Org, RecordTexts};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rusqlite::{Connection, types::Value};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use self::{
    changes::{Change, changes, return_events},
    removals::{hold, remove},
};
use crate::{
    log::Log,
    node::{NOW, SystemRandom},
};

struct Scene {
    folder: TempDir,
    keys: Keyring,
    org: Org,
    /// Checkpoints that are kept elsewhere.
    older: Since,
    newest: Since,
    evidence: BTreeMap<i64, Vec<Value>>,
}

impl Scene {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Two orgs; of the one a pruned beginning, payloads that were let go, an erasure, and one of
    /// which a hold kept a part.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keyring::generate(&SystemRandom, NOW);
        let live = folder.path().join("live.db");
        let copy = |name: &str| {
            let copy = format!("VACUUM INTO '{}'", folder.path().join(name).display());
            Connection::open(&live).unwrap().execute(&copy, ()).unwrap();
        };
        let log = Log::open(&live, &keys).await;
        let org = log.org("acme").await;
        let other = log.org("other").await;
        let ann = log.principal();
        let bob = log.principal();
        for _ in 0..3 {
            log.calls(&org, &[ann, bob, bob], 50).await;
            log.calls(&other, &[bob], 10).await;
        }
        let older = log.checkpoint(&org).await;
        copy("older.db");
        log.clock.forward(3_600);
        remove(&log, &org, ann).await;
        log.clock.forward(3_600);
        log.calls(&org, &[ann, bob], 120).await;
        log.calls(&other, &[bob], 10).await;
        hold(&log, &org).await;
        let newest = log.checkpoint(&org).await;
        copy("newest.db");
        log.close().await;
        let evidence = evidence(&Connection::open(&live).unwrap(), &org);
        Self { folder, keys, org, older, newest, evidence }
    }

    /// A copy of the newest database, opened beside the older one.
    fn copy(&self) -> (PathBuf, Connection) {
        let file = self.file("case.db");
        for more in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{more}", file.display()));
        }
        fs::copy(self.file("newest.db"), &file).unwrap();
        let open = Connection::open(&file).unwrap();
        open.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let older = format!("ATTACH '{}' AS older", self.file("older.db").display());
        open.execute(&older, ()).unwrap();
        (file, open)
    }

    /// A copy of the newest database with these changes.
    fn tamper(&self, changes: &[Change]) -> PathBuf {
        let (file, open) = self.copy();
        for change in changes {
            for statement in self.statements(change) {
                // What the schema refuses is not done, as for anybody else.
                let _ = open.execute(&statement, ());
            }
        }
        file
    }

    /// Answer of a verifier who kept this checkpoint, and the state of the database afterwards.
    async fn verified(
        &self,
        file: &PathBuf,
        kept: &Since,
    ) -> (Result<u64, Fault>, BTreeMap<i64, Vec<Value>>) {
        let log = Log::open(file, &self.keys).await;
        let found = log.verify(&self.org, Some(kept.clone())).await;
        log.close().await;
        (found, evidence(&Connection::open(file).unwrap(), &self.org))
    }

    /// Fails if the verifier holds a log for sound that is not the one that was kept.
    async fn judge(&self, changes: &[Change], noticed: &Cell<u32>) -> Result<(), TestCaseError> {
        for kept in [&self.older, &self.newest] {
            let file = self.tamper(changes);
            let (found, there) = self.verified(&file, kept).await;
            let size = i64::try_from(kept.checkpoint().size).unwrap();
            let differs = (0..size).find(|place| there.get(place) != self.evidence.get(place));
            let differs = differs.or_else(|| {
                there.iter().find(|(at, row)| self.evidence.get(at) != Some(row)).map(|it| *it.0)
            });
            match found {
                Ok(_) => prop_assert_eq!(differs, None, "a change at this place was not noticed"),
                Err(fault) => {
                    noticed.set(noticed.get() + 1);
                    prop_assert_ne!(fault.exit_code(), 1, "nobody can tell what: {}", fault);
                }
            }
        }
        Ok(())
    }
}

/// All that is evidence of the org's events, by their places; those without one stand below 0.
fn evidence(open: &Connection, org: &Org) -> BTreeMap<i64, Vec<Value>> {
    let columns = "e.id, e.type, e.occurred_at, e.committed_at, e.payload_at, e.actor_id, e.via, \
                   e.token_id, e.target, e.decision, e.policy, e.dlp_result, e.outcome, \
                   e.request_id, s.leaf_hash, s.recorded_at / 1000, e.packed";
    let sql = format!(
        "SELECT COALESCE(s.sequence, -e.position), {columns} FROM audit_seals s FULL JOIN audit_events e \
         ON s.position = e.position AND e.org_id = s.org_id \
         WHERE COALESCE(s.org_id, e.org_id) = ?1 AND COALESCE(s.sequence, 1000000) >= \
         COALESCE((SELECT size FROM audit_pruned WHERE org_id = ?1), 0)"
    );
    let mut select = open.prepare(&sql).unwrap();
    let rows = select.query_map([org.id.to_string()], |row| {
        let mut values =
            (1..18).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>()?;
        if let Some(Value::Blob(packed)) = values.last()
            && let Ok(texts) = RecordTexts::unpack(packed)
        {
            values.truncate(16);
            values.extend(values_of(&texts));
        }
        Ok((row.get(0)?, values))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// The texts of a record as columns.
fn values_of(texts: &RecordTexts) -> [Value; 3] {
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
    [Value::Text(texts.core.clone()), text(&texts.detached), text(&texts.salts)]
}

/// Lays the texts of all records out in a table, for statements to change.
fn spread(open: &Connection) {
    let texts = "CREATE TEMP TABLE texts (position INTEGER, core, detached, salts)";
    open.execute(texts, ()).unwrap();
    let mut select = open.prepare("SELECT position, packed FROM main.audit_events").unwrap();
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let rows: Vec<(i64, Vec<u8>)> = rows.map(Result::unwrap).collect();
    for (position, packed) in rows {
        let [core, detached, salts] = values_of(&RecordTexts::unpack(&packed).unwrap());
        let insert = "INSERT INTO texts VALUES (?1, ?2, ?3, ?4)";
        open.execute(insert, (position, core, detached, salts)).unwrap();
    }
    open.execute("CREATE TEMP TABLE as_they_were AS SELECT * FROM texts", ()).unwrap();
}

/// Packs the records whose texts were changed.
fn gather(open: &Connection) {
    let changed = "SELECT * FROM texts EXCEPT SELECT * FROM as_they_were";
    let mut changed = open.prepare(changed).unwrap();
    let rows = changed.query_map((), |row| {
        let texts = RecordTexts { core: row.get(1)?, detached: row.get(2)?, salts: row.get(3)? };
        Ok((row.get(0)?, texts.pack()))
    });
    let rows: Vec<(i64, Vec<u8>)> = rows.unwrap().map(Result::unwrap).collect();
    for (position, packed) in rows {
        let update = "UPDATE main.audit_events SET packed = ?1 WHERE position = ?2";
        open.execute(update, (packed, position)).unwrap();
    }
}

#[test]
fn whatever_a_verifier_with_an_older_checkpoint_could_notice_is_noticed() {
    let runtime = Runtime::new().unwrap();
    let scene = runtime.block_on(Scene::new());
    for kept in [&scene.older, &scene.newest] {
        let (found, there) = runtime.block_on(scene.verified(&scene.tamper(&[]), kept));
        assert_eq!(found, Ok(scene.newest.checkpoint().size));
        assert_eq!(there, scene.evidence);
    }
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);

    let mut runner = TestRunner::new_with_rng(config, seed);
    let noticed = Cell::new(0);
    let judge = |changes: Vec<Change>| runtime.block_on(scene.judge(&changes, &noticed));
    let held = runner.run(&changes(), judge);

    if let Err(error) = held {
        panic!("{error}");
    }
    assert!(noticed.get() > 150, "of 300 databases {noticed:?} were found out");
}

/// An attack, its statements, and the code and words with which it is named.
type Attack = (&'static str, Vec<String>, u8, String);

#[expect(clippy::too_many_lines, reason = "the table of all attacks")]
fn attacks(scene: &Scene) -> Vec<Attack> {
    let org = format!("org_id = '{}'", scene.org.id);
    let size = scene.newest.checkpoint().size;
    let at = |place: u64| {
        format!("(SELECT position FROM audit_seals WHERE {org} AND sequence = {place})")
    };
    let middle = size - 60;
    vec![
        (
            "the end is cut",
            vec![
                format!("DELETE FROM audit_events WHERE position >= {}", at(size - 5)),
                format!("DELETE FROM audit_seals WHERE {org} AND sequence >= {}", size - 5),
            ],
            13,
            format!("events {} to {} are missing", size - 5, size - 1),
        ),
        (
            "the newest seal is gone",
            vec![format!("DELETE FROM audit_seals WHERE {org} AND sequence = {}", size - 1)],
            13,
            format!("event {} is missing", size - 1),
        ),
        (
            "the newest event is gone",
            vec![format!("DELETE FROM audit_events WHERE position = {}", at(size - 1))],
            13,
            format!("event {} is missing", size - 1),
        ),
        (
            "a seal in the middle is gone",
            vec![format!("DELETE FROM audit_seals WHERE {org} AND sequence = {middle}")],
            13,
            format!("event {middle} is missing"),
        ),
        (
            "an event in the middle is gone",
            vec![format!("DELETE FROM audit_events WHERE position = {}", at(middle))],
            13,
            format!("event {middle} is missing"),
        ),
        (
            "detached is null",
            vec![format!(
                "UPDATE texts SET detached = NULL WHERE position = {}",
                at(middle)
            )],
            14,
            format!("at place {middle}: the detached value `actor_name`"),
        ),
        (
            "detached and salts look erased",
            vec![format!(
                "UPDATE texts SET detached = replace(detached, '\"203.0.113.7\"', 'null'), \
                 salts = json_remove(salts, '$.source_ip') WHERE position = {}",
                at(middle)
            )],
            14,
            "`source_ip` is gone, and no `audit.erased`".to_owned(),
        ),
        (
            "what was held looks erased",
            vec![format!(
                "UPDATE texts SET detached = replace(detached, '\"claude-code\"', 'null'), \
                 salts = json_remove(salts, '$.label') WHERE position IN (SELECT position \
                 FROM main.audit_events WHERE {org} AND type = 'mcp.invocation' AND position >= {})",
                at(size - 30)
            )],
            14,
            "more events have lost values".to_owned(),
        ),
        (
            "what was erased is back",
            vec![format!(
                "{} WHERE {org} \
                 AND position IN (SELECT e.position FROM main.audit_events e JOIN texts t \
                 ON t.position = e.position WHERE e.{org} \
                 AND t.detached LIKE '%\"actor_name\":null%' ORDER BY e.position DESC LIMIT 1)",
                return_events()
            )],
            14,
            "was erased, as the log tells, and is there again".to_owned(),
        ),
        (
            "a record has a line more",
            vec![format!(
                "UPDATE audit_events SET packed = (SELECT CAST(char(0) || core || char(10) || detached \
                 || char(10) || salts || char(10) || 'more' AS BLOB) FROM texts t \
                 WHERE t.position = audit_events.position) WHERE position = {}",
                at(middle)
            )],
            10,
            format!("place {middle} cannot be read"),
        ),
        (
            "an event was added",
            scene.statements(&Change::Adopt),
            10,
            "stands among those that have a place in the log and has none".to_owned(),
        ),
        (
            "a column was changed, and an event was added",
            [
                vec![format!("UPDATE audit_events SET outcome = 'x' WHERE position = {}", at(middle))],
                scene.statements(&Change::Adopt),
            ]
            .concat(),
            10,
            "has none: it was added or changed from outside, and an `audit.rows_refused` event tells if the \
             gateway refused it"
                .to_owned(),
        ),
        (
            "an event was copied",
            vec![copy_of(&format!("position = {}", at(middle)), "id")],
            10,
            "an `audit.rows_refused` event tells if the gateway refused it".to_owned(),
        ),
        (
            "an event was forged",
            vec![copy_of(
                &format!("position = {}", at(middle)),
                "'evt_01M754BKTKX1YB8Q05NMW9TP4G'",
            )],
            10,
            "evt_01M754BKTKX1YB8Q05NMW9TP4G stands among those".to_owned(),
        ),
        (
            "the head is beyond its seals",
            vec![format!("UPDATE audit_heads SET last_position = last_position + 9 WHERE {org}")],
            14,
            "the head of the log".to_owned(),
        ),
    ]
}

/// The statement that adds a copy of the event that is selected, with this id.
fn copy_of(which: &str, id: &str) -> String {
    let columns = "org_id, type, occurred_at, committed_at, actor_id, via, token_id, target, decision, policy, \
                   dlp_result, outcome, request_id, packed, payload_at, mac";
    format!(
        "INSERT INTO audit_events (id, {columns}) SELECT {id}, {columns} FROM audit_events WHERE {which}"
    )
}

#[test]
fn each_attack_on_the_rows_is_named_with_its_code() {
    let runtime = Runtime::new().unwrap();
    let scene = runtime.block_on(Scene::new());
    for (attack, statements, code, word) in attacks(&scene) {
        let (file, open) = scene.copy();
        spread(&open);
        for statement in statements {
            assert!(open.execute(&statement, ()).unwrap() > 0, "{attack}: {statement}");
        }
        gather(&open);
        drop(open);

        let (found, _) = runtime.block_on(scene.verified(&file, &scene.older));

        let fault = found.expect_err(attack);
        assert_eq!(fault.exit_code(), code, "{attack}: {fault}");
        assert!(fault.to_string().contains(&word), "{attack}: {fault}");
    }
}
