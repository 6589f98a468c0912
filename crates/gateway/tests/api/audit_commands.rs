//! `portcullis audit export` and `audit tail`: the log from the shell.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
};

use portcullis_core::audit::{export::Verifier, note::VerifierKey};

use crate::{planted::plant, prelude::*};

async fn start() -> (Gateway, Principal) {
    let (gateway, who) = serve(gateway().sample());
    plant(&gateway, &who, 60).await;
    (gateway, who)
}

fn run(gateway: &Gateway, command: &[&str]) -> String {
    let config = gateway.config_file();
    gateway.run(&[command, &["--config", &config.to_string_lossy()]].concat())
}

fn verify(file: &str) -> u64 {
    let manifest: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    let key: VerifierKey = manifest["keys"][0].as_str().unwrap().parse().unwrap();
    let mut verifier = Verifier::new(vec![key], None);
    for line in file.lines() {
        verifier.line(line.as_bytes()).unwrap();
    }
    let report = verifier.finish().unwrap();
    assert!(report.complete, "{report:?}");
    report.events
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_from_the_shell_verifies_and_a_tail_follows_what_comes() {
    let (gateway, who) = start().await;
    let path = gateway.folder().join("log.jsonl");
    let output = path.to_string_lossy().into_owned();

    let made = gateway.admin(&["audit", "export", "--org", "acme", "--output", &output]);

    let file = fs::read_to_string(&path).unwrap();
    has!(made, "/events": verify(&file), "/bytes": file.len());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let told = gateway.get(&who, "/v1/audit/events?type=audit.exported&limit=1").await;
    let event = &items(&told)[0];
    let hash = format!("sha256:{}", made["sha256"].as_str().unwrap());
    has!(event, "/target/version": hash.as_str(), "/actor/auth/method": "operator");
    let again = ["audit", "export", "--org", "acme", "--output", &output];
    assert_fails(&gateway, &again, 1, "already").await;

    // A tail shows the end and follows what comes.
    let config = gateway.config_file();
    let text = run(&gateway, &["audit", "tail", "--org", "acme", "-n", "5"]);
    assert_eq!(text.lines().count(), 5, "{text}");
    let few =
        run(&gateway, &["audit", "tail", "--org", "acme", "-n", "3", "--type", "token.revoked"]);
    assert!(few.lines().all(|line| line.contains("token.revoked")) && few.lines().count() == 3);

    let mut tail = gateway
        .command()
        .args(["audit", "tail", "--org", "acme", "--follow", "--json", "--type", "mcp.invocation"])
        .arg("--config")
        .arg(&config)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call = gateway.invoke(&who, "sample:create_note", json!({"title": "a", "text": "b"})).await;

    let lines = BufReader::new(tail.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = call.event_id().to_owned();
    let found = tokio::task::block_in_place(|| {
        lines
            .map(|line| serde_json::from_str::<Value>(&line).unwrap())
            .find(|event| event["id"] == id.as_str())
    });
    tail.kill().unwrap();
    tail.wait().unwrap();
    let found = found.unwrap();
    has!(found, "/target/id": "sample:create_note", "/detached/source_ip": "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_filters_and_actors_are_those_of_the_api_and_stdout_will_do() {
    let (mut gateway, who) = start().await;
    let listed = gateway.get(&who, "/v1/audit/events?decision=deny&limit=200").await;
    let denied = items(&listed).len();
    gateway.stop();

    let export =
        |more: &[&str]| run(&gateway, &[&["audit", "export", "--org", &who.org], more].concat());
    let table = export(&["--format", "csv", "--decision", "deny"]);
    let siem = export(&["--format", "ocsf", "--type", "token.revoked,token.issued"]);
    let all = export(&[]);

    // Each line begins with its sequence; those within a cell do not.
    let rows =
        table.split("\r\n").skip(1).filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(rows.count(), denied);
    for line in siem.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = event["metadata"]["event_code"].as_str().unwrap();
        assert!(["token.revoked", "token.issued"].contains(&kind), "{kind}");
    }
    assert!(!siem.is_empty() && verify(&all) > 60);
    for (arguments, wanted) in [
        (&["--org", "nobody"][..], "nobody"),
        (&["--org", "acme", "--decision", "maybe"], "decision"),
        (&["--org", "acme", "--from", "yesterday"], "--from"),
        (&["--org", "acme", "--format", "csv", "--include", "proofs"], "include"),
    ] {
        let (_, told) = failure(&gateway, &[&["audit", "export"], arguments].concat()).await;
        assert!(told.contains(wanted), "{told}");
    }

    // An actor is given by its id or its name.
    let by = |actor: &str| {
        let tail = ["audit", "tail", "-n", "20", "--actor", actor];
        let export = ["audit", "export", "--format", "csv", "--actor", actor];
        (run(&gateway, &tail), run(&gateway, &export))
    };

    let by_name = by(&format!("service for {ALL_SCOPES}"));
    let by_id = by(&who.id);
    let (_, told) = failure(&gateway, &["audit", "tail", "--actor", "eve"]).await;

    assert!(by_name.0.lines().count() == 20 && by_name.0 == by_id.0, "{}", by_name.0);
    assert!(by_name.1.lines().count() > 20 && by_name.1 == by_id.1, "{}", by_name.1);
    assert!(told.contains("no principal `eve`"), "{told}");
}
