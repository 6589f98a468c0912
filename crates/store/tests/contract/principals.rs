//! Users and service accounts.

use portcullis_core::principal::{Role, Scope, ScopeSet};
use portcullis_store::StoreError;

use crate::{
    database::{Database, on_both},
    given::{self, NOW},
};

on_both! {
    async fn every_role_reads_back_as_it_was_stored(db: Database) {
        let org = given::org(&db.store, 1).await;
        let listed = ScopeSet::EMPTY.with(Scope::McpsInvoke).with(Scope::AuditExport);
        let roles = [Role::Member, Role::Auditor, Role::Admin, Role::Service(listed)];

        for (n, role) in (1..).zip(roles) {
            let mut principal = given::principal(org, n);
            principal.role = role;
            db.store.create_principal(&principal).await.unwrap();

            assert_eq!(
                db.store.find_principal(org, principal.id).await.unwrap(),
                Some(principal.clone())
            );
            let named = db.store.find_principal_by_name(org, &principal.name).await.unwrap();
            assert_eq!(named, Some(principal));
        }
    }

    async fn a_principal_of_no_org_or_with_a_taken_name_is_a_conflict(db: Database) {
        let org = given::org(&db.store, 1).await;
        given::user(&db.store, org, 1).await;
        let mut twin = given::principal(org, 2);
        twin.name = "person 1".to_owned();

        let homeless = db.store.create_principal(&given::principal(given::id("org", 9), 3)).await;
        let taken = db.store.create_principal(&twin).await;

        assert!(matches!(homeless, Err(StoreError::Conflict(_))), "{homeless:?}");
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    }

    async fn a_role_can_be_changed_and_a_principal_disabled(db: Database) {
        let org = given::org(&db.store, 1).await;
        let user = given::user(&db.store, org, 1).await;

        assert!(db.store.set_role(org, user, Role::Auditor).await.unwrap());
        assert!(db.store.disable_principal(org, user, NOW).await.unwrap());
        assert!(db.store.disable_principal(org, user, NOW.plus_seconds(9)).await.unwrap());

        let found = db.store.find_principal(org, user).await.unwrap().unwrap();
        assert_eq!((found.role, found.disabled_at), (Role::Auditor, Some(NOW)));
    }
}
