//! Rows that cannot be read back: left out by themselves, and told.

use crate::prelude::*;
use crate::providers::provider;

/// The tables of the rows that were left out since this was asked last.
fn take_unreadable(store: &Store) -> Vec<&'static str> {
    let tables: BTreeSet<&str> = store.take_unreadable().iter().map(|row| row.table).collect();
    tables.into_iter().collect()
}

/// Two orgs with a principal, a token and a connection each.
async fn two(store: &Store) {
    for n in [1, 2] {
        let org = org(store, n).await;
        let user = user(store, org, n).await;
        store.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
        store.upsert_provider(&provider(org, ProviderOwner::Org, "sample", n), NOW).await.unwrap();
    }
}

on_both! {
    async fn a_row_of_a_list_that_cannot_be_read_takes_no_other_along(db: Database) {
        two(&db).await;
        let bad = id("org", 1);
        let good = id("org", 2);
        for statement in [
            "UPDATE providers SET status = 'bogus' WHERE id LIKE '%1'",
            "UPDATE tokens SET kind = 'bogus' WHERE id LIKE '%1'",
            "UPDATE principals SET role = 'bogus' WHERE id LIKE '%1'",
            "UPDATE orgs SET plan = 'bogus' WHERE id LIKE '%1'",
        ] {
            db.execute(statement).await;
        }

        let orgs = db.list_orgs().await.unwrap();
        assert_eq!((orgs.len(), orgs[0].id, take_unreadable(&db)), (1, good, vec!["orgs"]));
        let owners = BTreeSet::from([(bad, ProviderOwner::Org), (good, ProviderOwner::Org)]);
        let connections = db.providers_of(&owners).await.unwrap();
        assert_eq!((connections.len(), connections[0].org_id), (1, good));
        assert!(db.list_providers(bad).await.unwrap().is_empty());
        let left_out = db.take_unreadable();
        let row = left_out.first().unwrap();
        assert_eq!((left_out.len(), row.table), (1, "providers"), "each once: {left_out:?}");
        for name in [bad.to_string(), id::<portcullis_core::id::ProviderId>("prv", 1).to_string()] {
            assert!(row.row.contains(&name), "{row:?}");
        }
        let ids = [id("tok", 1), id("tok", 2)];
        let known = db.find_tokens(&ids).await.unwrap();
        assert_eq!((known.len(), known[0].org.id, take_unreadable(&db)), (1, good, vec!["tokens"]));
        assert_eq!(db.find_token_by_hash(&hash(1)).await, Ok(None));
        assert_eq!(take_unreadable(&db), ["tokens"]);
        assert!(db.find_token_by_hash(&hash(2)).await.unwrap().is_some());
        let page = TokenPage { limit: 10, ..TokenPage::default() };
        assert!(db.list_tokens(bad, page).await.unwrap().is_empty());
        assert!(db.list_principals(bad).await.unwrap().is_empty());
        assert_eq!(take_unreadable(&db), ["principals", "tokens"]);
        assert!(take_unreadable(&db).is_empty(), "told once");
    }

    async fn intents_behind_one_that_cannot_be_read_are_found(db: Database) {
        two(&db).await;
        db.execute(
            "INSERT INTO audit_intents (id, org_id, node, opened_at) \
             SELECT 'a' || id, id, 'gone', 1 FROM orgs",
        ).await;
        let org = id("org", 1);
        let open = intent(org, 7);
        let (writer, _tasks) = writer(&db);
        writer.intent(open.clone(), soon()).await.unwrap();

        // Both that cannot be read come first.
        let found = db.abandoned_intents(1).await.unwrap();

        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), [open.id]);
        assert_eq!(take_unreadable(&db), ["audit_intents"]);
    }

    async fn what_was_accepted_of_a_tool_is_never_taken_for_nothing(db: Database) {
        let told_of = |tool: &str| UpstreamDefinition {
            tool: tool.parse().unwrap(),
            version: "a".to_owned(),
            text: "{}".to_owned(),
        };
        db.pin_tools(None, &[told_of("sample:a"), told_of("sample:b")], NOW).await.unwrap();
        db.execute("UPDATE capability_pins SET version = NULL WHERE capability_id = 'sample:a'").await;

        let pinned = db.list_pins(None, "sample").await.unwrap();

        let versions: Vec<_> =
            pinned.pins.iter().map(|pin| pin.accepted.as_ref().unwrap().version.as_str()).collect();
        assert_eq!(versions, ["unreadable", "a"]);
        db.execute("UPDATE capability_pins SET capability_id = 'sample:?' WHERE capability_id = 'sample:a'").await;
        let pinned = db.list_pins(None, "sample").await.unwrap();
        assert_eq!((pinned.pins.len(), pinned.nameless), (1, 1));
        assert_eq!(db.pins_changed_since(Timestamp::default()).await.unwrap().len(), 1);
        assert_eq!(take_unreadable(&db), ["capability_pins"]);
    }
}
