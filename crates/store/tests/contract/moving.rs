//! Moving everything from SQLite into PostgreSQL: all of it, or nothing.

use crate::prelude::*;
use crate::providers::provider;

/// An installation that was used: two logs, one of them with events that are not sealed, a call
/// under way, tokens that come from others.
async fn use_it(store: &Store) -> OrgId {
    let orgs = orgs(store).await;
    for (org, n) in orgs.into_iter().zip(1..) {
        let user = user(store, org, n).await;
        store.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
        let mut child = token(org, user, n + 10);
        child.parent_id = Some(token_id(n));
        store.insert_token(&child, &hash(n + 10)).await.unwrap();
        store.upsert_provider(&provider(org, ProviderOwner::Org, "github", n), NOW).await.unwrap();
        append_all(store, (0..300).map(|i| event(org, n * 1000 + i)).collect()).await;
        store.seal(org, leaf).await.unwrap();
    }
    append_all(store, vec![event(orgs[0], 1500)]).await;
    let (writer, _tasks) = writer(store);
    writer.intent(keyed_intent(orgs[0], 1501, "digest"), soon()).await.unwrap();
    writer.intent(intent(orgs[1], 2501), soon()).await.unwrap();
    let approved =
        Approval { status: Status::Approved, uses_left: 2, ..approval(orgs[1], 1, "call") };
    assert!(change(&writer, &approved, None, 2502).await);
    writer.intent(approved_intent(orgs[1], 2503, &[(1, "call")]), soon()).await.unwrap();
    let secret = SealedSecret {
        org_id: String::new(),
        kind: "client".to_owned(),
        row_id: "c".to_owned(),
        field: "f".to_owned(),
        key_id: "k".to_owned(),
        sealed: vec![0, 255, 10],
    };
    store.put_secret(&secret).await.unwrap();
    orgs[0]
}

/// A file that is used, and an empty PostgreSQL database; both are dropped afterwards.
async fn with_both<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Database, Database) -> F + Send + 'static,
) {
    Database::on_sqlite(|source| async move {
        Database::on_postgres(move |target| test(source, target)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_afterwards_and_goes_on() {
    with_both(|source, target| async move {
        let org = use_it(&source.store).await;
        let log = whole_log(&source.store, org).await;
        let root = source.store.root_at(org, 300).await.unwrap();
        source.store.close().await;
        let target = target.store;

        let moved = target.take_over(&source.file()).await.unwrap();

        let rows = |name| moved.tables.iter().find(|table| table.name == name).unwrap().rows;
        assert_eq!((rows("audit_events"), rows("audit_seals"), rows("tokens")), (602, 600, 4));
        let [first, _] = moved.logs.as_slice() else { panic!("{:?}", moved.logs) };
        assert_eq!((first.org_id, first.size, first.root), (org, 300, root));
        assert_eq!(whole_log(&target, org).await, log);
        let found = target.find_token_by_hash(&hash(11)).await.unwrap().unwrap();
        assert_eq!(found.token.parent_id, Some(token_id(1)));
        let secret = target.find_secret("", "client", "c", "f").await.unwrap().unwrap();
        assert_eq!(secret.sealed, [0, 255, 10]);
        assert_eq!(target.abandoned_intents(10).await.unwrap().len(), 3);
        let call = target.find_approval(id("org", 2), id("apr", 1)).await;
        let call = call.unwrap().unwrap();
        assert_eq!((call.revision, call.approval.uses_left), (2, 1));
        append_all(&target, vec![event(org, 1600)]).await;
        target.seal(org, leaf).await.unwrap();
        assert_eq!(target.sealed_size(org).await.unwrap(), 302);
        let ids: Vec<_> = whole_log(&target, org).await[300..].iter().map(|it| it.id).collect();
        assert_eq!(ids, [id("evt", 1500), id("evt", 1600)]);
        assert_eq!(target.root_at(org, 300).await.unwrap(), root);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_use_a_full_target_and_another_schema_are_refused() {
    with_both(|source, target| async move {
        use_it(&source.store).await;
        let file = source.file();

        let in_use = target.store.take_over(&file).await;
        let into_a_file = source.store.take_over(&file).await;
        source.store.close().await;
        org(&target.store, 9).await;
        let full = target.store.take_over(&file).await;
        target.execute("DELETE FROM audit_heads; DELETE FROM orgs").await;
        source.execute("INSERT INTO schema_migrations (version, name) VALUES (9001, 'x')").await;
        let newer = target.store.take_over(&file).await;
        source.execute("UPDATE schema_migrations SET name = 'x'").await;
        let other = target.store.take_over(&file).await;
        source.execute("DELETE FROM schema_migrations").await;
        let older = target.store.take_over(&file).await;
        let missing = target.store.take_over(&file.with_file_name("none.db")).await;

        assert_eq!(in_use, Err(MovingError::InUse));
        assert_eq!(into_a_file, Err(MovingError::Target));
        assert_eq!(full, Err(MovingError::NotEmpty("orgs")));
        let (found, known) = (9001, 1);
        let refused = |error| Err(MovingError::Store(error));
        assert_eq!(newer, refused(StoreError::NewerSchema { found, known }));
        assert_eq!(other, refused(StoreError::OlderBuild));
        assert_eq!(older, refused(StoreError::OlderSchema { found: 0, known }));
        assert!(matches!(missing, Err(MovingError::Source(_))), "{missing:?}");
        assert!(target.store.list_orgs().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_arrives_otherwise_than_it_was_is_not_taken() {
    with_both(|source, target| async move {
        use_it(&source.store).await;
        source.store.close().await;
        let spoil = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                     NEW.hashes = set_byte(NEW.hashes, 3, get_byte(NEW.hashes, 3) # 1); \
                     RETURN NEW; END $$; \
                     CREATE TRIGGER spoil BEFORE INSERT ON audit_tiles \
                     FOR EACH ROW EXECUTE FUNCTION spoil()";
        target.execute(spoil).await;

        let spoiled = target.store.take_over(&source.file()).await;

        assert!(matches!(spoiled, Err(MovingError::Log(_))), "{spoiled:?}");
        target.execute("DROP TRIGGER spoil ON audit_tiles").await;
        assert!(target.store.list_orgs().await.unwrap().is_empty(), "nothing was moved");
        target.store.take_over(&source.file()).await.unwrap();
    })
    .await;
}
