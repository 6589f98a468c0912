//! No function shows or changes what belongs to another org.

use crate::prelude::*;
use crate::providers::provider;

/// One of everything, all under the number `n`.
async fn tenant(store: &Store, n: u32) -> OrgId {
    let org = org(store, n).await;
    let user = user(store, org, n).await;
    store.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
    store.upsert_provider(&provider(org, ProviderOwner::Org, "github", n), NOW).await.unwrap();
    let mut done = event(org, n);
    done.actor_id = Some(user);
    append_all(store, vec![done]).await;
    store.seal(org, leaf).await.unwrap();
    org
}

on_both! {
    async fn nobody_finds_what_is_another_tenants(db: Database) {
        let ours = tenant(&db, 1).await;
        tenant(&db, 2).await;
        let user = id("usr", 2);

        assert_eq!(db.find_principal(ours, user).await.unwrap(), None);
        assert_eq!(db.find_principal_by_name(ours, "person 2").await.unwrap(), None);
        assert_eq!(db.find_token(ours, token_id(2)).await.unwrap(), None);
        assert_eq!(db.find_provider(ours, id("prv", 2)).await.unwrap(), None);
        for visibility in [Visibility::All, Visibility::Own(user)] {
            let found = db.find_event(ours, visibility, id("evt", 2)).await.unwrap();
            assert_eq!(found, None);
        }
    }

    async fn nobody_lists_what_is_another_tenants(db: Database) {
        let ours = tenant(&db, 1).await;
        tenant(&db, 2).await;
        let page = TokenPage { principal_id: None, after: None, limit: 10 };
        let theirs = TokenPage { principal_id: Some(id("usr", 2)), ..page };

        assert_eq!(db.list_principals(ours).await.unwrap().len(), 1);
        assert_eq!(db.list_tokens(ours, page).await.unwrap().len(), 1);
        assert!(db.list_tokens(ours, theirs).await.unwrap().is_empty());
        assert_eq!(db.list_providers(ours).await.unwrap().len(), 1);
        for order in [EventOrder::Ascending, EventOrder::Descending] {
            let filter = EventFilter::default();
            let page = db.list_events(ours, Visibility::All, &filter, order, None, 10).await;
            let events = page.unwrap().events;
            assert_eq!(events.iter().map(|it| it.id).collect::<Vec<_>>(), [id("evt", 1)]);
        }
    }

    async fn nobody_changes_what_is_another_tenants(db: Database) {
        let ours = tenant(&db, 1).await;
        let theirs = tenant(&db, 2).await;
        let store = &db;
        let user = id("usr", 2);
        let token = token_id(2);
        let provider = id("prv", 2);

        assert!(!store.set_role(ours, user, Role::Admin).await.unwrap());
        assert!(!store.disable_principal(ours, user, NOW).await.unwrap());
        assert_eq!(store.revoke_token(ours, token, NOW).await.unwrap(), None);
        assert!(!store.hide_provider(ours, provider, &event(ours, 9)).await.unwrap());

        let principal = store.find_principal(theirs, user).await.unwrap().unwrap();
        assert_eq!((principal.role, principal.disabled_at), (Role::Member, None));
        assert_eq!(store.find_token(theirs, token).await.unwrap().unwrap().revoked_at, None);
        let provider = store.find_provider(theirs, provider).await.unwrap().unwrap();
        assert_eq!(provider.removed_at, None);
    }

    async fn a_token_never_spans_tenants(db: Database) {
        let ours = tenant(&db, 1).await;
        tenant(&db, 2).await;
        let me = id("usr", 1);
        let stranger = id("usr", 2);
        let of_stranger = token(ours, stranger, 3);
        let mut via_stranger = token(ours, me, 4);
        via_stranger.via = Some(stranger);
        let mut from_stranger = token(ours, me, 5);
        from_stranger.parent_id = Some(token_id(2));

        for (n, token) in (3..).zip([of_stranger, via_stranger, from_stranger]) {
            let refused = db.insert_token(&token, &hash(n)).await;

            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{n}: {refused:?}");
        }
    }

    async fn revoking_stays_in_the_tenant_even_if_grants_have_one_name(db: Database) {
        let ours = tenant(&db, 1).await;
        let theirs = tenant(&db, 2).await;
        let mut twin = token(theirs, id("usr", 2), 3);
        twin.grant_id = id("grn", 1);
        db.insert_token(&twin, &hash(3)).await.unwrap();

        let others = db.revoke_token(ours, token_id(1), NOW).await.unwrap();

        assert_eq!(others, Some(0));
        assert_eq!(db.find_token(theirs, twin.id).await.unwrap().unwrap().revoked_at, None);
    }
}
