//! Logs that a writer of the database changed so that the gateway itself would remove what has to stay: retention and
//! erasure stop, and tell why.

use portcullis_core::id::{PrincipalId, PrincipalKind};

use crate::{
    audit_log::forge,
    planted::{as_of, hold_at, make_org, plant_at},
    prelude::*,
};

const DAY: i64 = 86_400;
/// Places of a log: what was made of its org, the calls of ann, those of bob, which a hold covers, and the hold. All
/// are beyond their retention; behind them are young ones.
const BOBS: i64 = 7;
const YOUNG: i64 = 11;

/// A log, and who is in it.
struct Aged {
    org: String,
    ann: Principal,
    bob: Principal,
    /// Ids of bob's events.
    bobs: Vec<String>,
}

impl Aged {
    /// A log that began at this moment, with a hold and so many events of now.
    async fn new(gateway: &Gateway, name: &str, began: Timestamp, young: usize) -> Self {
        let log = Self::of_long_ago(gateway, name, began).await;
        hold_at(gateway, &log.bob, began.plus_seconds(3)).await;
        plant_at(gateway, &log.ann, began.plus_seconds(499 * DAY), young).await;
        log.verify(gateway).await;
        log
    }

    async fn of_long_ago(gateway: &Gateway, name: &str, began: Timestamp) -> Self {
        let (org, [ann, bob]) = as_of(gateway, began, async |operator| {
            let org = make_org(operator, name).await;
            let ids = operator.ids();
            let who = [(); 2].map(|()| Principal {
                org: org.clone(),
                id: PrincipalId::new(PrincipalKind::User, ids).to_string(),
                token_id: "tok_01M754BKTKX1YB8Q05NMW9TP4G".to_owned(),
                token: String::new(),
            });
            (org, who)
        })
        .await;
        plant_at(gateway, &ann, began.plus_seconds(1), 6).await;
        let bobs = plant_at(gateway, &bob, began.plus_seconds(2), 3).await;
        Self { org, ann, bob, bobs }
    }

    /// Seals and signs it.
    async fn verify(&self, gateway: &Gateway) {
        let verified = run(gateway, &["audit", "verify", "--org", &self.org]).await;
        assert!(verified.status.success(), "{verified:?}");
    }

    fn first(&self, gateway: &Gateway) -> String {
        let first = "SELECT COALESCE(MIN(sequence), -1) FROM audit_seals WHERE org_id";
        gateway.ask(&format!("{first} = '{}'", self.org))
    }

    /// How much of the log is there: events, seals and payloads up to the first young ones.
    fn kept(&self, gateway: &Gateway) -> String {
        let org = &self.org;
        let upto = YOUNG + 3;
        let seals = format!("audit_seals WHERE org_id = '{org}' AND sequence < {upto}");
        let join = if gateway.database_url().starts_with("sqlite:") { "position" } else { "id" };
        let seal = if join == "id" { "event_id" } else { "position" };
        let events = format!(
            "audit_events e WHERE e.org_id = '{org}' AND e.{join} IN (SELECT {seal} FROM {seals})"
        );
        gateway.ask(&format!(
            "SELECT (SELECT COUNT(*) FROM {seals}) || ' ' || (SELECT COUNT(*) FROM {events}) || ' ' || \
             (SELECT COALESCE(SUM(length(e.packed)), 0) FROM {events})"
        ))
    }

    fn told(&self, gateway: &Gateway, kind: &str) -> String {
        gateway.ask(&format!(
            "SELECT COUNT(*) FROM audit_events WHERE org_id = '{}' AND type = '{kind}' AND outcome = 'denied'",
            self.org
        ))
    }
}

/// Makes the last event of bob one of ann, up to the tile of the tree.
fn forge_last(gateway: &Gateway, log: &Aged) {
    let id = log.bobs.last().unwrap();
    forge(gateway, &log.org, id, |texts| texts.core = texts.core.replace(&log.bob.id, &log.ann.id));
    let columns = format!("actor_id = '{}', via = NULL", log.ann.id);
    gateway.tamper(&format!("UPDATE audit_events SET {columns} WHERE id = '{id}'"));
}

/// Change of a log in the database, and the words with which retention stops.
type Attack = (&'static str, fn(&Gateway, &Aged), &'static str);

fn statements(gateway: &Gateway, log: &Aged, statements: &[&str]) {
    for statement in statements {
        let statement = statement
            .replace("@id", &log.org)
            .replace("ORG", &format!("org_id = '{}'", log.org))
            .replace("ANN", &log.ann.id)
            .replace("BOB", &log.bob.id);
        gateway.tamper(&statement);
    }
}

const FRESH: &str =
    "UPDATE audit_seals SET recorded_at = recorded_at - 43200000000000 WHERE ORG AND sequence = 11";
const LIFT: &str = "DELETE FROM audit_holds WHERE ORG";

const ATTACKS: [Attack; 10] = [
    (
        "young events look old",
        |it, log| statements(it, log, &[FRESH]),
        "event 11 was changed: it is not the one of the log in: leaf",
    ),
    (
        "payloads of young events look old",
        |it, log| {
            statements(
                it,
                log,
                &["UPDATE audit_events SET payload_at = 1 WHERE ORG AND payload_at IS NOT NULL"],
            );
        },
        "`payload_at`",
    ),
    (
        "bob's events look like ann's",
        |it, log| {
            statements(
                it,
                log,
                &[
                    "UPDATE audit_events SET actor_id = 'ANN', via = NULL WHERE ORG AND actor_id = 'BOB'",
                ],
            );
        },
        "is not found by its record: `actor_id",
    ),
    (
        "the hold is gone",
        |it, log| statements(it, log, &[LIFT]),
        "is in force, as the log tells, and `audit_holds` does not have it",
    ),
    (
        "the hold looks lifted",
        |it, log| statements(it, log, &["UPDATE audit_holds SET released_at = 1 WHERE ORG"]),
        "is in force, as the log tells",
    ),
    (
        "hold and type of its event are gone",
        |it, log| {
            let hide = "UPDATE audit_events SET type = 'mcp.invocation' WHERE ORG AND type = 'audit.hold_changed'";
            statements(it, log, &[LIFT, hide]);
        },
        "`type",
    ),
    (
        "the hold and its event are gone",
        |it, log| {
            let seal = "DELETE FROM audit_seals WHERE ORG AND sequence = 10";
            let event = "DELETE FROM audit_events WHERE ORG AND type = 'audit.hold_changed'";
            statements(it, log, &[LIFT, seal, event]);
        },
        "event 10 is missing",
    ),
    (
        "the beginning looks pruned",
        |it, log| {
            let begin = "INSERT INTO audit_pruned (org_id, size) VALUES ('@id', 11)";
            statements(it, log, &[begin, LIFT]);
        },
        "the first 11 events are passed over as if they had been removed",
    ),
    (
        "an event is of another moment",
        |it, log| {
            statements(
                it,
                log,
                &["UPDATE audit_events SET committed_at = 1 WHERE ORG AND actor_id = 'BOB'"],
            );
        },
        "`committed_at",
    ),
    ("a record is forged up to its tile", forge_last, "are not those of the signed tree"),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_of_a_log_that_does_not_prove_that_it_may() {
    let listening = "[server]\nmetrics_listen = \"127.0.0.1:0\"";
    let (mut gateway, _) = serve(gateway().config(listening).sample());
    let began = now(&gateway).await.floor_to_millis().plus_seconds(-500 * DAY);
    gateway.stop();
    let mut logs = Vec::new();
    for (number, (name, attack, words)) in ATTACKS.into_iter().enumerate() {
        // The first tile of the log is full.
        let young = if words.contains("tree") { 300 } else { 3 };
        let began = began.plus_seconds(10 * i64::try_from(number).unwrap());
        let log = Aged::new(&gateway, name, began, young).await;
        attack(&gateway, &log);
        let kept = log.kept(&gateway);
        logs.push((name, words, log, kept));
    }
    let erase = ["audit", "erase", "--from", "2000-01-01T00:00:00Z", "--reason", "all", "--org"];
    let sound = Aged::new(&gateway, "sound", began.plus_seconds(1_000), 3).await;
    let narrowed = Aged::new(&gateway, "narrowed", began.plus_seconds(1_010), 3).await;
    let other = "UPDATE audit_holds SET actor_id = 'usr_01M754BKTKFVJC7V0B9VHVKZBP' WHERE ORG";
    statements(&gateway, &narrowed, &[other]);

    for (name, words, log, kept) in &logs {
        let (_, told) = failure(&gateway, &[&erase[..], &[&log.org]].concat()).await;
        assert!(told.contains(words), "{name}: {told}");
        assert_eq!(log.told(&gateway, "audit.erased"), "1", "{name}");
        assert_eq!(&log.kept(&gateway), kept, "{name}");
    }
    gateway.start();

    for log in [&sound, &narrowed] {
        let is_gone = async || (log.first(&gateway) == BOBS.to_string()).then_some(());
        eventually("the beginning is gone", is_gone).await;
    }
    for (name, words, log, kept) in &logs {
        eventually("retention stops", async || {
            (log.told(&gateway, "audit.pruned") == "1").then_some(())
        })
        .await;
        let line = gateway.log();
        let line =
            line.lines().find(|line| line.contains(&log.org) && line.contains("nothing of it"));
        assert!(line.is_some_and(|line| line.contains(words)), "{name}: {line:?}");
        assert_eq!(&log.kept(&gateway), kept, "{name}");
    }
    let metrics = gateway.metrics().await;
    let stopped = metrics
        .lines()
        .find_map(|line| line.strip_prefix("portcullis_audit_stopped_removals_total "));
    assert!(stopped.unwrap().parse::<usize>().unwrap() >= ATTACKS.len(), "{stopped:?}");
    let payloads = format!(
        "SELECT COUNT(*) FROM audit_events WHERE org_id = '{}' AND payload_at IS NOT NULL",
        sound.org
    );
    assert_eq!(gateway.ask(&payloads), "6", "bob's, and the young ones");
    let erased = gateway.admin(&[&erase[..], &[&sound.org]].concat());
    has!(&erased, "/held": 3);
    let verified = run(&gateway, &["audit", "verify", "--org", &sound.org]).await;
    assert!(verified.status.success(), "{verified:?}");
}

/// On PostgreSQL, where a month goes as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_stays_for_a_log_that_does_not_prove_its_part_of_it() {
    let (mut gateway, _) = serve(gateway().sample());
    if gateway.database_url().starts_with("sqlite:") {
        return;
    }
    let began = now(&gateway).await.floor_to_millis().plus_seconds(-500 * DAY);
    gateway.stop();
    store(&gateway).await.make_months(began).await.unwrap();
    let sound = Aged::of_long_ago(&gateway, "sound", began).await;
    let changed = Aged::of_long_ago(&gateway, "changed", began.plus_seconds(10)).await;
    for log in [&sound, &changed] {
        log.verify(&gateway).await;
    }
    statements(
        &gateway,
        &changed,
        &["UPDATE audit_events SET actor_id = 'ANN' WHERE ORG AND actor_id = 'BOB'"],
    );
    let month = began.to_string()[..7].replace('-', "_");
    let is_there = format!("SELECT to_regclass('audit_seals_{month}') IS NOT NULL");

    gateway.start();
    let is_gone = async || (sound.first(&gateway) == "10").then_some(());
    eventually("the sound log is pruned row by row", is_gone).await;
    assert_eq!((gateway.ask(&is_there), changed.first(&gateway)), ("t".to_owned(), "0".to_owned()));
    assert_eq!(changed.told(&gateway, "audit.pruned"), "1");
    gateway.stop();
    let mended = run(&gateway, &["audit", "reindex", "--org", &changed.org]).await;
    assert_eq!(mended.status.code(), Some(14), "{mended:?}");
    gateway.start();

    let is_gone = async || (gateway.ask(&is_there) == "f").then_some(());
    eventually("the month is gone", is_gone).await;
    assert_eq!(changed.first(&gateway), "10");
}
