//! The way to PostgreSQL under TLS.

use std::env;

use portcullis_testkit::PostgresServer;

use crate::{authority::Authority, prelude::*};

/// A server with a certificate for 127.0.0.1, and the file of its issuer.
fn server(folder: &Path) -> (PostgresServer, PathBuf) {
    let authority = Authority::new(folder, "authority.pem");
    let (certificate, key) = authority.certificate();
    let start = || PostgresServer::start_with_tls(&certificate.pem(), &key.serialize_pem());
    (tokio::task::block_in_place(start), authority.file)
}

fn config(server: &PostgresServer, options: &str) -> String {
    format!("[database]\nurl = \"{}?{options}\"\n", server.url_at(server.address()))
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_is_spoken_to_under_tls_and_is_who_it_says() {
    if env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (server, authority) = server(folder.path());
    let verified =
        format!("sslmode=verify-full&sslrootcert={}&channel_binding=require", authority.display());
    let gateway = gateway().sample().config(&config(&server, &verified)).start();
    let who = gateway.service(&gateway.org("acme", &[]), ALL_SCOPES);

    gateway.invoke(&who, "sample:list_items", json!({"limit": 1})).await.ok();

    for (options, reason) in
        [("sslmode=verify-full", "certificate"), ("sslmode=disable", "no encryption")]
    {
        let refused = crate::gateway().config(&config(&server, options)).prepare();
        let (_, told) = failure(&refused, &["org", "list"]).await;
        assert!(told.contains(reason) && !told.contains("store-canary"), "{told}");
    }
    // A socket of this machine, which knows no TLS.
    let url = format!("[database]\nurl = \"{}&sslmode=require\"\n", server.url_over_socket());
    let local = crate::gateway().config(&url).prepare();
    let listed = run(&local, &["org", "list"]).await;
    assert!(String::from_utf8_lossy(&listed.stdout).contains("acme"), "{listed:?}");
}
