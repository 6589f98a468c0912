//! Users who come from an issuer.

use portcullis_store::{Identity, StoreError};

use crate::{
    database::{Database, on_both},
    given,
};

const ANA: Identity<'_> =
    Identity { issuer: "https://login.acme.example", claim: "sub", subject: "ana" };

on_both! {
    async fn a_subject_is_the_same_principal_ever_after_and_only_in_its_org(db: Database) {
        let ours = given::org(&db.store, 1).await;
        let theirs = given::org(&db.store, 2).await;
        let principal = given::principal(ours, 1);
        assert_eq!(db.store.find_by_identity(ours, ANA).await.unwrap(), None);

        db.store.create_with_identity(&principal, ANA).await.unwrap();

        assert_eq!(db.store.find_by_identity(ours, ANA).await.unwrap(), Some(principal));
        assert_eq!(db.store.find_by_identity(theirs, ANA).await.unwrap(), None);
        for other in [
            Identity { issuer: "https://login.other.example", ..ANA },
            Identity { claim: "email", ..ANA },
            Identity { subject: "Ana", ..ANA },
        ] {
            assert_eq!(db.store.find_by_identity(ours, other).await.unwrap(), None, "{other:?}");
        }
    }

    async fn of_two_first_logins_one_makes_the_principal_and_the_other_nothing(db: Database) {
        let org = given::org(&db.store, 1).await;
        db.store.create_with_identity(&given::principal(org, 1), ANA).await.unwrap();

        let second = db.store.create_with_identity(&given::principal(org, 2), ANA).await;

        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        assert_eq!(db.store.list_principals(org).await.unwrap().len(), 1);
    }

    async fn a_principal_can_be_disabled_and_enabled_again(db: Database) {
        let (org, user) = given::member(&db.store).await;

        db.store.disable_principal(org, user, given::NOW).await.unwrap();
        let enabled = db.store.enable_principal(org, user).await.unwrap();

        assert!(enabled);
        let found = db.store.find_principal(org, user).await.unwrap().unwrap();
        assert_eq!(found.disabled_at, None);
        assert!(!db.store.enable_principal(org, given::id("usr", 9)).await.unwrap());
    }
}
