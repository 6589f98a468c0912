//! Connections and the ids they keep.

use crate::prelude::*;

pub(crate) fn provider(org_id: OrgId, owner: ProviderOwner, slug: &str, n: u32) -> NewProvider {
    NewProvider {
        id: id("prv", n),
        org_id,
        owner,
        slug: slug.parse().unwrap(),
        name: format!("provider {n}"),
        auth_type: "none".to_owned(),
    }
}

on_both! {
    async fn a_provider_keeps_its_id_for_ever(db: Database) {
        let (org, user) = member(&db).await;
        let first = provider(org, ProviderOwner::Org, "github", 1);
        let again = provider(org, ProviderOwner::Org, "github", 2);
        let other = provider(org, ProviderOwner::Principal(user), "github", 3);
        let later = NOW.plus_seconds(60);

        let created = db.upsert_provider(&first, NOW).await.unwrap();
        let same = db.upsert_provider(&first, later).await.unwrap();
        let renamed = db.upsert_provider(&again, later).await.unwrap();
        let own = db.upsert_provider(&other, later).await.unwrap();

        assert_eq!(same, created);
        assert_eq!(created.status, ProviderStatus::Pending);
        assert_eq!((renamed.id, renamed.name.as_str()), (first.id, "provider 2"));
        assert_eq!((renamed.created_at, renamed.updated_at), (NOW, later));
        assert_eq!(own.id, other.id);
        assert_eq!(own.owner, ProviderOwner::Principal(user));
    }

    async fn a_provider_is_known_as_it_was_added_last(db: Database) {
        let org = org(&db, 1).await;
        let first = provider(org, ProviderOwner::Org, "github", 1);
        let renamed = provider(org, ProviderOwner::Org, "github", 2);
        let elsewhere = provider(given::org(&db, 2).await, ProviderOwner::Org, "github", 3);

        assert!(!db.has_provider(&first).await.unwrap());
        db.upsert_provider(&first, NOW).await.unwrap();
        assert!(db.has_provider(&first).await.unwrap());
        assert!(!db.has_provider(&renamed).await.unwrap());
        assert!(!db.has_provider(&elsewhere).await.unwrap());

        db.upsert_provider(&renamed, NOW).await.unwrap();
        assert!(!db.has_provider(&first).await.unwrap());
        assert!(db.has_provider(&renamed).await.unwrap());
    }

    async fn providers_are_listed_by_slug(db: Database) {
        let org = org(&db, 1).await;
        for (n, slug) in (1..).zip(["b", "a-c", "ab"]) {
            let new = provider(org, ProviderOwner::Org, slug, n);
            db.upsert_provider(&new, NOW).await.unwrap();
        }

        let listed = db.list_providers(org).await.unwrap();

        let slugs: Vec<_> = listed.iter().map(|provider| provider.slug.as_str()).collect();
        assert_eq!(slugs, ["a-c", "ab", "b"]);
    }
}
