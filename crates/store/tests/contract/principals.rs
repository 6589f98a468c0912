//! Users and service accounts.

use std::collections::BTreeSet;

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

            let found = db.store.find_principal(org, principal.id).await.unwrap();
            assert_eq!(found, Some(principal.clone()));
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
        let (org, user) = given::member(&db.store).await;

        assert!(db.store.set_role(org, user, Role::Auditor).await.unwrap());
        assert!(db.store.disable_principal(org, user, NOW).await.unwrap());
        assert!(db.store.disable_principal(org, user, NOW.plus_seconds(9)).await.unwrap());

        let found = db.store.find_principal(org, user).await.unwrap().unwrap();
        assert_eq!((found.role, found.disabled_at), (Role::Auditor, Some(NOW)));
    }

    async fn a_principal_is_in_the_groups_that_it_was_put_into_last(db: Database) {
        let (org, user) = given::member(&db.store).await;
        let other = given::org(&db.store, 2).await;
        let twin = given::user(&db.store, other, 2).await;
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let groups_of =
            async |org, id| db.store.find_principal(org, id).await.unwrap().unwrap().groups;
        let token = given::token(org, user, 1);
        db.store.insert_token(&token, &given::hash(1)).await.unwrap();

        assert!(groups_of(org, user).await.is_empty());
        assert!(db.store.set_groups(org, user, &set(&["finance", "a\"b'"])).await.unwrap());

        assert_eq!(groups_of(org, user).await, set(&["finance", "a\"b'"]));
        assert_eq!(db.store.list_principals(org).await.unwrap()[0].groups.len(), 2);
        let known = db.store.find_token_by_hash(&given::hash(1)).await.unwrap().unwrap();
        assert_eq!(known.principal.groups, set(&["finance", "a\"b'"]));
        let asked = set(&["finance", "a\"b'", "fin", "ops"]);
        assert_eq!(db.store.unnamed_groups(org, &asked).await.unwrap(), set(&["fin", "ops"]));
        assert_eq!(db.store.unnamed_groups(other, &asked).await.unwrap(), asked);
        assert!(!db.store.set_groups(other, user, &set(&["ops"])).await.unwrap());
        assert!(groups_of(other, twin).await.is_empty());
        assert!(db.store.set_groups(org, user, &set(&["ops"])).await.unwrap());
        assert_eq!(groups_of(org, user).await, set(&["ops"]));
        assert!(db.store.set_groups(org, user, &set(&[])).await.unwrap());
        assert!(groups_of(org, user).await.is_empty());
    }
}
