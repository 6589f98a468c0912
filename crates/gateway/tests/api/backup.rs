//! `portcullis backup` and `portcullis restore`.

use std::os::unix::fs::PermissionsExt as _;

use crate::prelude::*;

/// Contents of the data folder of an installation on SQLite.
const KEPT: &str = "portcullis.db portcullis.db-wal portcullis.db-shm key audit-key policies \
    policies.last-good.json policies.overrides.json exports";

/// A gateway that served calls, with its caller.
async fn used() -> (Gateway, Principal) {
    let (gateway, who) = serve(gateway().on_sqlite().sample());
    call(&gateway, &who).await;
    (gateway, who)
}

async fn call(gateway: &Gateway, who: &Principal) {
    gateway.invoke(who, "sample:list_items", json!({})).await.ok();
}

/// The number of calls in the log.
async fn calls(gateway: &Gateway, who: &Principal) -> usize {
    let events = gateway.get(who, "/v1/audit/events?type=mcp.invocation&limit=200").await;
    items(&events).len()
}

fn lose(folder: &Path) {
    for path in KEPT.split(' ').map(|name| folder.join(name)) {
        let lost = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        // Some were never made.
        drop(lost);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_taken_while_calls_run_is_restored_whole() {
    let (mut gateway, who) = used().await;
    let copy = gateway.folder().join("copy");
    let to = copy.to_string_lossy().into_owned();

    let (shown, ()) = tokio::join!(
        async { tokio::task::block_in_place(|| gateway.admin(&["backup", &to, "--keys"])) },
        async {
            for _ in 0..5 {
                call(&gateway, &who).await;
            }
        }
    );
    let before = calls(&gateway, &who).await;
    fs::write(copy.join("policies.overrides.json"), "not of the copy").expect("a file");
    gateway.stop();
    lose(gateway.folder());
    let restored = gateway.admin(&["restore", &to]);
    gateway.start();

    assert!(shown["files"].as_u64().expect("a number") >= 5, "{shown}");
    assert_eq!((mode(&copy), mode(&copy.join("portcullis.db"))), (0o700, 0o600));
    assert_eq!(restored["kept"], json!([]), "{restored}");
    let added = fs::read_to_string(gateway.folder().join("policies.overrides.json"));
    assert_ne!(added.unwrap_or_default(), "not of the copy");
    let after = calls(&gateway, &who).await;
    assert!((1..=before).contains(&after), "{after} of {before}");
    call(&gateway, &who).await;
    let verified = run(&gateway, &["audit", "verify", "--org", "acme"]).await;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_stay_out_of_a_copy_unless_they_are_asked_for() {
    let (mut gateway, _) = used().await;
    let copies = ["plain", "keys"].map(|name| gateway.folder().join(name));
    let [plain, keys] = copies.each_ref().map(|it| it.to_string_lossy().into_owned());

    gateway.admin(&["backup", &plain]);
    gateway.admin(&["backup", &keys, "--files-only", "--keys"]);
    gateway.stop();
    lose(gateway.folder());
    let (_, keyless) = failure(&gateway, &["restore", &plain]).await;
    let is_untouched = !gateway.folder().join("portcullis.db").exists();
    for copy in [&keys, &plain] {
        gateway.admin(&["restore", copy]);
    }

    assert!(keyless.contains("restore the copy of the keys first") && is_untouched, "{keyless}");
    let holds = |copy: &PathBuf, name: &str| copy.join(name).exists();
    assert!(holds(&copies[0], "portcullis.db") && holds(&copies[0], "policies"));
    assert!(!holds(&copies[0], "keys") && !holds(&copies[1], "portcullis.db"));
    assert!(holds(&copies[1], "keys/key") && holds(&copies[1], "keys/audit-key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_restored_over_what_is_there_or_from_a_damaged_copy() {
    let (mut gateway, _) = used().await;
    let copy = gateway.folder().join("copy");
    let to = copy.to_string_lossy().into_owned();
    gateway.admin(&["backup", &to]);

    let (_, again) = failure(&gateway, &["backup", &to]).await;
    let (_, serving) = failure(&gateway, &["restore", &to]).await;
    gateway.stop();
    let (_, there) = failure(&gateway, &["restore", &to]).await;
    let mut damaged = fs::read(copy.join("portcullis.db")).expect("a database");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(copy.join("portcullis.db"), damaged).expect("a file");
    let (_, spoilt) = failure(&gateway, &["restore", &to]).await;
    fs::remove_file(copy.join("manifest.json")).expect("a manifest");
    let (_, unfinished) = failure(&gateway, &["restore", &to]).await;

    assert!(again.contains("is not empty"), "{again}");
    assert!(serving.contains("another process serves"), "{serving}");
    assert!(there.contains("move it away first"), "{there}");
    assert!(spoilt.contains("`portcullis.db` is not as it was written"), "{spoilt}");
    assert!(unfinished.contains("was not finished"), "{unfinished}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_keys_stop_a_restore_and_equal_files_are_not_told() {
    let (mut gateway, _) = used().await;
    let to = gateway.folder().join("copy").to_string_lossy().into_owned();
    gateway.admin(&["backup", &to, "--keys"]);
    gateway.stop();
    for name in ["portcullis.db", "portcullis.db-wal", "portcullis.db-shm"] {
        // SQLite may have removed the files beside it.
        drop(fs::remove_file(gateway.folder().join(name)));
    }
    let key = gateway.folder().join("key");
    let own = fs::read_to_string(&key).expect("a key");
    fs::write(&key, format!("{}=\n", "A".repeat(43))).expect("a file");

    let (_, other) = failure(&gateway, &["restore", &to]).await;
    let is_untouched = !gateway.folder().join("portcullis.db").exists();
    fs::write(&key, own).expect("a file");
    let restored = gateway.admin(&["restore", &to]);

    assert!(other.contains("key` lacks a key of the copy") && is_untouched, "{other}");
    assert_eq!(restored["kept"], json!([]), "{restored}");
}

#[tokio::test]
async fn postgresql_is_left_to_its_own_tools() {
    let config = "[database]\nurl = \"postgres://portcullis@db.example/portcullis\"";
    let gateway = gateway().on_sqlite().sample().config(config).prepare();
    let to = gateway.folder().join("copy").to_string_lossy().into_owned();

    let (_, told) = failure(&gateway, &["backup", &to]).await;
    gateway.admin(&["backup", &to, "--files-only"]);

    assert!(told.contains("pg_dump") && told.contains("--files-only"), "{told}");
}
