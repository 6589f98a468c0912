//! Connections with credentials, connects under way, and the secrets of both.

use crate::prelude::*;
use crate::providers::provider;

fn secret(org: OrgId, kind: &str, row: &str, field: &str, key: &str) -> SealedSecret {
    SealedSecret {
        org_id: org.to_string(),
        kind: kind.to_owned(),
        row_id: row.to_owned(),
        field: field.to_owned(),
        key_id: key.to_owned(),
        sealed: format!("sealed {row}").into_bytes(),
    }
}

fn credential(org: OrgId, row: &str, due: Option<Timestamp>) -> NewCredential {
    NewCredential {
        secret: secret(org, CONNECTION, row, CREDENTIAL, "kek_1"),
        grant: Grant {
            scopes: vec!["a".to_owned(), "b".to_owned()],
            expires_at: Some(NOW.plus_seconds(60)),
            refreshable: true,
            refresh_due_at: due,
            ..Grant::default()
        },
        account: None,
    }
}

fn attempt(org: OrgId, n: u32) -> NewAttempt {
    let id = format!("att_{n}");
    NewAttempt {
        secret: secret(org, ATTEMPT, &id, "begun", "kek_1"),
        id,
        org_id: org,
        provider_id: given::id("prv", n),
        slug: "github".to_owned(),
        owner: ProviderOwner::Principal(given::id("usr", n)),
        principal_id: given::id("usr", n),
        state_hash: [u8::try_from(n).unwrap(); 32],
        expires_at: NOW.plus_seconds(600),
    }
}

/// An org with a user and the user's connection, all under the number `n`.
async fn tenant(store: &Store, n: u32) -> OrgId {
    let org = org(store, n).await;
    let user = user(store, org, n).await;
    let new = provider(org, ProviderOwner::Principal(user), "github", n);
    store.upsert_provider(&new, NOW).await.unwrap();
    org
}

on_both! {
    async fn credentials_and_what_is_known_of_them_come_together(db: Database) {
        let org = tenant(&db, 1).await;
        let id = id("prv", 1);
        let new = credential(org, "prv_x", Some(NOW));

        let kept = db.keep_credential(org, id, &new, NOW).await.unwrap().unwrap();

        assert_eq!((kept.status, kept.revision), (ProviderStatus::Connected, 1));
        assert_eq!(kept.grant, new.grant);
        assert_eq!(db.find_provider(org, id).await.unwrap(), Some(kept));
        let found = db.find_secret(&org.to_string(), CONNECTION, "prv_x", CREDENTIAL).await;
        assert_eq!(found.unwrap(), Some(new.secret.clone()));
        let nobody = db.keep_credential(org, given::id("prv", 9), &new, NOW).await.unwrap();
        assert_eq!(nobody, None, "a connection that is gone gets none");
    }

    async fn of_two_who_would_renew_one_may_and_an_old_revision_changes_nothing(db: Database) {
        let org = tenant(&db, 1).await;
        let id = id("prv", 1);
        let new = credential(org, "prv_x", Some(NOW));
        db.keep_credential(org, id, &new, NOW).await.unwrap();
        let until = NOW.plus_seconds(30);
        let due = db.due_refreshes(NOW, 10).await.unwrap();
        assert_eq!(due.len(), 1);

        assert!(db.lease_refresh(org, id, 1, "node-1", NOW, until).await.unwrap());
        assert!(!db.lease_refresh(org, id, 1, "node-2", NOW, until).await.unwrap());

        assert!(!db.lease_refresh(org, id, 1, "node-1", NOW, until).await.unwrap(), "nor twice");
        assert!(db.due_refreshes(NOW, 10).await.unwrap().is_empty(), "somebody is at it");
        let now = NOW.plus_seconds(31);
        let until = NOW.plus_seconds(61);
        assert!(db.lease_refresh(org, id, 1, "node-2", now, until).await.unwrap(), "it ran out");
        assert!(!db.lease_refresh(org, id, 0, "node-2", now, until).await.unwrap());
        let needs = ProviderStatus::NeedsAuth;
        let why = Some("why");
        assert!(!db.set_status_of(org, id, 0, needs, why, NOW).await.unwrap());
        assert!(db.set_status_of(org, id, 1, needs, why, NOW).await.unwrap());
        let again = db.set_status_of(org, id, 1, needs, why, NOW).await.unwrap();
        assert!(!again, "it is so already");
        let record = db.find_provider(org, id).await.unwrap().unwrap();
        assert_eq!(record.grant.refresh_due_at, None);
        db.refresh_failed(org, id, 1, Some(NOW)).await.unwrap();
        let record = db.find_provider(org, id).await.unwrap().unwrap();
        assert_eq!(record.grant.refresh_failures, 1);
    }

    async fn a_state_lets_one_browser_in_and_none_too_late(db: Database) {
        let org = tenant(&db, 1).await;
        db.begin_attempt(&attempt(org, 1)).await.unwrap();
        let late = NOW.plus_seconds(600);

        assert_eq!(db.call_attempt_back(&[1; 32], late).await.unwrap(), None);
        assert_eq!(db.call_attempt_back(&[2; 32], NOW).await.unwrap(), None);
        let found = db.call_attempt_back(&[1; 32], NOW).await.unwrap().unwrap();
        assert_eq!(db.call_attempt_back(&[1; 32], NOW).await.unwrap(), None, "used");

        assert_eq!((found.org_id, found.tries), (org, 0));
        let granted = secret(org, ATTEMPT, "att_1", "granted", "kek_1");
        assert!(db.grant_attempt(&found, &[7; 32], &granted).await.unwrap());
        assert!(!db.grant_attempt(&found, &[8; 32], &granted).await.unwrap());
        assert_eq!(db.count_wrong_code(&found).await.unwrap(), 1);
        assert_eq!(db.expired_attempts(late, 10).await.unwrap().len(), 1);
        assert!(db.end_attempt(&found).await.unwrap());
        assert!(!db.end_attempt(&found).await.unwrap());
        assert_eq!(db.count_wrong_code(&found).await.unwrap(), 0);
        assert!(db.count_secrets().await.unwrap().is_empty(), "its secrets went with it");
    }

    async fn the_connections_of_many_owners_are_found_at_once(db: Database) {
        let orgs = [tenant(&db, 1).await, tenant(&db, 2).await];
        let own = |n| ProviderOwner::Principal(id("usr", n));
        let of_org = provider(orgs[0], ProviderOwner::Org, "gitlab", 3);
        db.upsert_provider(&of_org, NOW).await.unwrap();

        let asked = BTreeSet::from([
            (orgs[0], own(1)),
            (orgs[0], ProviderOwner::Org),
            (orgs[0], own(2)),
            (orgs[1], own(2)),
            (orgs[1], ProviderOwner::Org),
        ]);
        let mut found = db.providers_of(&asked).await.unwrap();

        let mut alone = Vec::new();
        for (org, n) in orgs.into_iter().zip(1..) {
            alone.extend(db.reachable_providers(org, id("usr", n)).await.unwrap());
        }
        found.sort_by_key(|record| record.id);
        alone.sort_by_key(|record| record.id);
        assert_eq!(found.len(), 3);
        assert_eq!(found, alone);
        assert!(db.providers_of(&BTreeSet::new()).await.unwrap().is_empty());
    }

    async fn nobody_reaches_another_tenants_connections(db: Database) {
        let ours = tenant(&db, 1).await;
        let theirs = tenant(&db, 2).await;
        let store = &db;
        let id = id("prv", 2);
        store.keep_credential(theirs, id, &credential(theirs, "x", None), NOW).await.unwrap();
        store.begin_attempt(&attempt(theirs, 2)).await.unwrap();
        let user = given::id("usr", 2);
        let owner = ProviderOwner::Principal(user);

        assert!(store.reachable_providers(ours, user).await.unwrap().is_empty());
        assert_eq!(store.credential_of(ours, id).await.unwrap(), None);
        assert!(store.attempts_of(ours, user, "github", owner).await.unwrap().is_empty());
        assert!(store.attempts_for(ours, id).await.unwrap().is_empty());
        assert!(!store.set_status_of(ours, id, 1, ProviderStatus::Error, None, NOW).await.unwrap());
        let list = NewToolList { digest: "d", definitions: "[]", tools: 0 };
        assert!(!store.keep_tool_list(ours, id, &list).await.unwrap());
        assert!(!store.remove_provider(ours, id, &event(ours, 1)).await.unwrap());
        assert!(!store.hide_provider(ours, id, &event(ours, 2)).await.unwrap());
        assert!(!store.forget_pending_provider(ours, id).await.unwrap());
        assert!(!store.lease_refresh(ours, id, 1, "node", NOW, NOW).await.unwrap());
        assert!(store.keep_tool_list(theirs, id, &list).await.unwrap());
        assert_eq!(store.find_tool_list(ours, "d").await.unwrap(), None);
        let record = store.find_provider(theirs, id).await.unwrap().unwrap();
        assert_eq!(record.status, ProviderStatus::Connected);
    }

    async fn what_ends_a_connection_is_committed_with_the_event_that_tells_of_it(db: Database) {
        let org = tenant(&db, 1).await;
        let store = &db;
        let id = id("prv", 1);
        store.keep_credential(org, id, &credential(org, "x", None), NOW).await.unwrap();
        let told = event(org, 1);

        assert!(store.remove_provider(org, id, &told).await.unwrap());
        assert!(!store.remove_provider(org, id, &event(org, 2)).await.unwrap());

        let found = async |id| store.find_event(org, Visibility::All, id).await.unwrap();
        assert!(found(told.id).await.is_some());
        assert!(found(given::id("evt", 2)).await.is_none(), "nothing ended, nothing is told");
        assert!(store.find_provider(org, id).await.unwrap().is_none());
    }

    async fn connections_whose_provider_is_not_configured_are_noted_and_found(db: Database) {
        let org = tenant(&db, 1).await;
        let id = id("prv", 1);
        let due = Some(NOW);
        db.keep_credential(org, id, &credential(org, &id.to_string(), due), NOW).await.unwrap();
        let there = BTreeSet::from(["github"]);
        let nothing = BTreeSet::new();
        let later = NOW.plus_seconds(60);

        assert!(db.note_missing_providers(&there, NOW).await.unwrap().is_empty());
        assert_eq!(db.note_missing_providers(&nothing, NOW).await.unwrap(), ["github"]);
        assert!(db.note_missing_providers(&nothing, later).await.unwrap().is_empty());
        assert_eq!(db.missing_providers(NOW, 10).await.unwrap().len(), 1);
        assert!(db.missing_providers(NOW.plus_seconds(-1), 10).await.unwrap().is_empty());
        assert!(db.due_refreshes(later, 10).await.unwrap().is_empty());
        assert!(db.note_missing_providers(&there, later).await.unwrap().is_empty());
        assert!(db.missing_providers(later, 10).await.unwrap().is_empty());
        assert_eq!(db.due_refreshes(later, 10).await.unwrap().len(), 1);
    }

    async fn pages_go_on_after_slug_and_id(db: Database) {
        let (org, user) = member(&db).await;
        let own = ProviderOwner::Principal(user);
        let all = [(ProviderOwner::Org, "b"), (ProviderOwner::Org, "a"), (own, "b")];
        for (n, (owner, slug)) in (1..).zip(all) {
            let new = provider(org, owner, slug, n);
            db.upsert_provider(&new, NOW).await.unwrap();
        }
        let page = |owner, after| ProviderPage { owner, after, limit: 2 };

        let first = db.page_providers(org, page(OwnerFilter::Everybody, None)).await.unwrap();
        let last = first.last().unwrap();
        let slug = last.slug.as_str();
        let id = last.id.to_string();
        let after = Some((slug, id.as_str()));
        let rest = db.page_providers(org, page(OwnerFilter::Everybody, after)).await.unwrap();
        let orgs = OwnerFilter::Only(ProviderOwner::Org);
        let orgs = db.page_providers(org, page(orgs, None)).await.unwrap();

        let slugs = |page: &[ProviderRecord]| {
            page.iter().map(|it| it.slug.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((slugs(&first), slugs(&rest)), (vec!["a".into(), "b".into()], vec!["b".into()]));
        assert_eq!(orgs.len(), 2);
        let hidden = given::id("prv", 2);
        let told = event(org, 1);
        assert!(db.hide_provider(org, hidden, &told).await.unwrap());
        assert!(!db.hide_provider(org, hidden, &event(org, 2)).await.unwrap());
        assert_eq!(db.list_providers(org).await.unwrap().len(), 2);
        let new = given::id("prv", 9);
        db.unhide_provider(org, given::id("prv", 2), new, NOW).await.unwrap();
        assert!(db.find_provider(org, new).await.unwrap().is_some());
    }

    async fn secrets_are_swapped_only_where_nobody_else_wrote(db: Database) {
        let org = org(&db, 1).await;
        let old = secret(org, CONNECTION, "a", CREDENTIAL, "kek_1");
        let new = SealedSecret { key_id: "kek_2".to_owned(), sealed: vec![2], ..old.clone() };
        db.put_secret(&old).await.unwrap();
        assert_eq!(db.secrets_not_under("kek_2", None, 10).await.unwrap(), std::slice::from_ref(&old));

        assert!(db.swap_secret(&old, &new).await.unwrap());
        assert!(!db.swap_secret(&old, &new).await.unwrap());

        assert!(db.secrets_not_under("kek_2", None, 10).await.unwrap().is_empty());
        assert_eq!(db.count_secrets().await.unwrap(), [("kek_2".to_owned(), 1)]);
    }

    async fn a_registration_is_remembered_per_issuer_and_address(db: Database) {
        let client = OAuthClient {
            issuer: "https://id.example".to_owned(),
            redirect_uri: "https://gw.example/oauth/callback".to_owned(),
            id: "grn_1".to_owned(),
            client_id: "x".to_owned(),
            method: "none".to_owned(),
            registered_at: NOW,
            expires_at: None,
        };
        db.keep_oauth_client(&client, None).await.unwrap();
        let again = OAuthClient { client_id: "y".to_owned(), ..client.clone() };
        db.keep_oauth_client(&again, None).await.unwrap();

        let find = |issuer: &'static str| {
            db.find_oauth_client(issuer, "https://gw.example/oauth/callback")
        };
        assert_eq!(find("https://id.example").await.unwrap(), Some(again));
        assert_eq!(find("https://id.example/").await.unwrap(), None);

        let forget = |client| db.forget_oauth_client("https://id.example", client);
        assert!(!forget("x").await.unwrap(), "it was replaced meanwhile");
        assert!(forget("y").await.unwrap());
        assert!(!forget("y").await.unwrap());
        assert_eq!(find("https://id.example").await.unwrap(), None);
    }

    async fn a_list_of_tools_is_kept_as_long_as_a_connection_lists_it(db: Database) {
        let org = tenant(&db, 1).await;
        let id = id("prv", 1);
        let list = |digest| NewToolList { digest, definitions: "[1]", tools: 1 };

        assert!(db.keep_tool_list(org, id, &list("a")).await.unwrap());
        assert!(db.keep_tool_list(org, id, &list("b")).await.unwrap());
        assert!(!db.keep_tool_list(org, id, &list("b")).await.unwrap());

        assert_eq!(db.find_tool_list(org, "a").await.unwrap(), None);
        assert_eq!(db.find_tool_list(org, "b").await.unwrap().as_deref(), Some("[1]"));
        let mended = NewToolList { definitions: "[2]", ..list("b") };
        db.keep_tool_list(org, id, &mended).await.unwrap();
        assert_eq!(db.find_tool_list(org, "b").await.unwrap().as_deref(), Some("[2]"));
    }
}
