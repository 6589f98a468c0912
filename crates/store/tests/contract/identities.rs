//! Users who come from an issuer.

use crate::prelude::*;

const ANA: Identity<'_> =
    Identity { issuer: "https://login.acme.example", claim: "sub", subject: "ana" };

on_both! {
    async fn a_subject_is_the_same_principal_ever_after_and_only_in_its_org(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        let principal = principal(ours, 1);
        assert_eq!(db.find_by_identity(ours, ANA).await.unwrap(), None);

        db.create_with_identity(&principal, ANA).await.unwrap();

        assert_eq!(db.find_by_identity(ours, ANA).await.unwrap(), Some(principal));
        assert_eq!(db.find_by_identity(theirs, ANA).await.unwrap(), None);
        for other in [
            Identity { issuer: "https://login.other.example", ..ANA },
            Identity { claim: "email", ..ANA },
            Identity { subject: "Ana", ..ANA },
        ] {
            assert_eq!(db.find_by_identity(ours, other).await.unwrap(), None, "{other:?}");
        }
    }

    async fn of_two_first_logins_one_makes_the_principal_and_the_other_nothing(db: Database) {
        let org = org(&db, 1).await;
        db.create_with_identity(&principal(org, 1), ANA).await.unwrap();

        let second = db.create_with_identity(&principal(org, 2), ANA).await;

        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        assert_eq!(db.list_principals(org).await.unwrap().len(), 1);
    }

    async fn a_principal_can_be_disabled_and_enabled_again(db: Database) {
        let (org, user) = member(&db).await;

        db.disable_principal(org, user, NOW).await.unwrap();
        let enabled = db.enable_principal(org, user).await.unwrap();

        assert!(enabled);
        let found = db.find_principal(org, user).await.unwrap().unwrap();
        assert_eq!(found.disabled_at, None);
        assert!(!db.enable_principal(org, id("usr", 9)).await.unwrap());
    }
}
