//! Registrations of OAuth clients, which cost the node nothing that stays.

use std::{collections::BTreeSet, fs, sync::Arc};

use portcullis_core::trust::TrustRules;
use serde_json::json;

use crate::node::{NOW, Stopped, app, store};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_registrations_store_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let clock = Arc::new(Stopped::at(NOW));
    let app = app(folder.path(), &store, clock, TrustRules::default(), None);
    let written = || {
        let files = ["portcullis.db", "portcullis.db-wal"].map(|name| folder.path().join(name));
        files.map(|file| fs::metadata(file).map_or(0, |it| it.len()))
    };
    let before = written();
    let document = json!({"client_name": "App", "redirect_uris": ["http://127.0.0.1/cb"]});

    let mut ids = BTreeSet::new();
    for _ in 0..10_000 {
        let (registration, sealed) = app.authorization.register(&document).unwrap();
        let token = Some(sealed.access_token.expose());
        assert_eq!(app.authorization.registration(&sealed.client_id, token), Ok(registration));
        ids.insert(sealed.client_id);
    }

    assert_eq!(ids.len(), 10_000);
    assert_eq!(written(), before);
}
