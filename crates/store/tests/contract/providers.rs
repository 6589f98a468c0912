//! Connections and the ids they keep.

use portcullis_core::id::{OrgId, ProviderId};
use portcullis_store::{NewProvider, ProviderOwner, ProviderStatus, ProviderUpdate};

use crate::{
    database::{Database, on_both},
    given::{self, NOW},
};

pub(crate) fn provider(org_id: OrgId, owner: ProviderOwner, slug: &str, n: u32) -> NewProvider {
    NewProvider {
        id: given::id("prv", n),
        org_id,
        owner,
        slug: slug.parse().unwrap(),
        name: format!("provider {n}"),
        auth_type: "none".to_owned(),
    }
}

on_both! {
    async fn a_provider_keeps_its_id_for_ever(db: Database) {
        let (org, user) = given::member(&db.store).await;
        let first = provider(org, ProviderOwner::Org, "github", 1);
        let again = provider(org, ProviderOwner::Org, "github", 2);
        let other = provider(org, ProviderOwner::Principal(user), "github", 3);
        let later = NOW.plus_seconds(60);

        let created = db.store.upsert_provider(&first, NOW).await.unwrap();
        let same = db.store.upsert_provider(&first, later).await.unwrap();
        let renamed = db.store.upsert_provider(&again, later).await.unwrap();
        let own = db.store.upsert_provider(&other, later).await.unwrap();

        assert_eq!(same, created);
        assert_eq!(created.status, ProviderStatus::Pending);
        assert_eq!((renamed.id, renamed.name.as_str()), (first.id, "provider 2"));
        assert_eq!((renamed.created_at, renamed.updated_at), (NOW, later));
        assert_eq!(own.id, other.id);
        assert_eq!(own.owner, ProviderOwner::Principal(user));
    }

    async fn a_provider_is_known_as_it_was_added_last(db: Database) {
        let org = given::org(&db.store, 1).await;
        let first = provider(org, ProviderOwner::Org, "github", 1);
        let renamed = provider(org, ProviderOwner::Org, "github", 2);
        let elsewhere = provider(given::org(&db.store, 2).await, ProviderOwner::Org, "github", 3);

        assert!(!db.store.has_provider(&first).await.unwrap());
        db.store.upsert_provider(&first, NOW).await.unwrap();
        assert!(db.store.has_provider(&first).await.unwrap());
        assert!(!db.store.has_provider(&renamed).await.unwrap());
        assert!(!db.store.has_provider(&elsewhere).await.unwrap());

        db.store.upsert_provider(&renamed, NOW).await.unwrap();
        assert!(!db.store.has_provider(&first).await.unwrap());
        assert!(db.store.has_provider(&renamed).await.unwrap());
    }

    async fn a_status_is_remembered_with_the_moment_it_first_worked(db: Database) {
        let org = given::org(&db.store, 1).await;
        let id: ProviderId = given::id("prv", 1);
        db.store.upsert_provider(&provider(org, ProviderOwner::Org, "a", 1), NOW).await.unwrap();
        let connected = ProviderUpdate {
            status: ProviderStatus::Connected,
            last_error: None,
            tools: Some(34),
        };
        let broken = ProviderUpdate {
            status: ProviderStatus::Error,
            last_error: Some("connection refused".to_owned()),
            tools: None,
        };

        let updates = [(&connected, 1), (&broken, 2), (&connected, 3), (&broken, 4)];
        for (update, second) in updates {
            let now = NOW.plus_seconds(second);
            assert!(db.store.set_provider_status(org, id, update, now).await.unwrap());
        }

        let found = db.store.find_provider(org, id).await.unwrap().unwrap();
        assert_eq!(found.status, ProviderStatus::Error);
        assert_eq!(found.last_error.as_deref(), Some("connection refused"));
        assert_eq!(found.tools, 34);
        assert_eq!(found.connected_at, Some(NOW.plus_seconds(1)));
        assert_eq!(found.updated_at, NOW.plus_seconds(4));
    }

    async fn providers_are_listed_by_slug(db: Database) {
        let org = given::org(&db.store, 1).await;
        for (n, slug) in (1..).zip(["b", "a-c", "ab"]) {
            let new = provider(org, ProviderOwner::Org, slug, n);
            db.store.upsert_provider(&new, NOW).await.unwrap();
        }

        let listed = db.store.list_providers(org).await.unwrap();

        let slugs: Vec<_> = listed.iter().map(|provider| provider.slug.as_str()).collect();
        assert_eq!(slugs, ["a-c", "ab", "b"]);
    }
}
