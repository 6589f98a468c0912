//! Users and service accounts.

use crate::prelude::*;

/// A principal after a change of its role.
fn with_role(principal: &Principal, role: Role) -> Principal {
    Principal { role, ..principal.clone() }
}

on_both! {
    async fn every_role_reads_back_as_it_was_stored(db: Database) {
        let org = org(&db, 1).await;
        let listed = ScopeSet::EMPTY.with(Scope::McpsInvoke).with(Scope::AuditExport);
        let roles = [Role::Member, Role::Auditor, Role::Admin, Role::Service(listed)];

        for (n, role) in (1..).zip(roles) {
            let mut principal = principal(org, n);
            principal.role = role;
            db.create_principal(&principal).await.unwrap();

            let found = db.find_principal(org, principal.id).await.unwrap();
            assert_eq!(found, Some(principal.clone()));
            let named = db.find_principal_by_name(org, &principal.name).await.unwrap();
            assert_eq!(named, Some(principal));
        }
    }

    async fn a_principal_of_no_org_or_with_a_taken_name_is_a_conflict(db: Database) {
        let org = org(&db, 1).await;
        user(&db, org, 1).await;
        let mut twin = principal(org, 2);
        twin.name = "person 1".to_owned();

        let homeless = db.create_principal(&principal(id("org", 9), 3)).await;
        let taken = db.create_principal(&twin).await;

        assert!(matches!(homeless, Err(StoreError::Conflict(_))), "{homeless:?}");
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    }

    async fn a_role_can_be_changed_and_a_principal_disabled(db: Database) {
        let (org, user) = member(&db).await;

        assert!(db.set_role(org, user, Role::Auditor).await.unwrap());
        assert!(db.disable_principal(org, user, NOW).await.unwrap());
        assert!(db.disable_principal(org, user, NOW.plus_seconds(9)).await.unwrap());

        let found = db.find_principal(org, user).await.unwrap().unwrap();
        assert_eq!((found.role, found.disabled_at), (Role::Auditor, Some(NOW)));
    }

    async fn a_principal_is_in_the_groups_that_it_was_put_into_last(db: Database) {
        let (org, user) = member(&db).await;
        let other = given::org(&db, 2).await;
        let twin = given::user(&db, other, 2).await;
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let groups_of = async |org, id| db.find_principal(org, id).await.unwrap().unwrap().groups;
        let token = token(org, user, 1);
        db.insert_token(&token, &hash(1)).await.unwrap();

        assert!(groups_of(org, user).await.is_empty());
        assert!(db.set_groups(org, user, &set(&["finance", "a\"b'"])).await.unwrap());

        assert_eq!(groups_of(org, user).await, set(&["finance", "a\"b'"]));
        assert_eq!(db.list_principals(org).await.unwrap()[0].groups.len(), 2);
        let known = db.find_token_by_hash(&hash(1)).await.unwrap().unwrap();
        assert_eq!(known.principal.groups, set(&["finance", "a\"b'"]));
        let asked = set(&["finance", "a\"b'", "fin", "ops"]);
        assert_eq!(db.unnamed_groups(org, &asked).await.unwrap(), set(&["fin", "ops"]));
        assert_eq!(db.unnamed_groups(other, &asked).await.unwrap(), asked);
        assert!(!db.set_groups(other, user, &set(&["ops"])).await.unwrap());
        assert!(groups_of(other, twin).await.is_empty());
        assert!(db.set_groups(org, user, &set(&["ops"])).await.unwrap());
        assert_eq!(groups_of(org, user).await, set(&["ops"]));
        assert!(db.set_groups(org, user, &set(&[])).await.unwrap());
        assert!(groups_of(org, user).await.is_empty());
    }

    async fn a_change_and_its_event_are_made_together_or_not_at_all(db: Database) {
        let org = org(&db, 1).await;
        let ana = principal(org, 1);
        db.record_new_principal(&ana, &event(org, 1)).await.unwrap();
        let auditor = with_role(&ana, Role::Auditor);
        let change = |before, after| PrincipalChange { before, after, last_admin: LastAdmin::Kept };

        let done = db.change_principal(&change(&ana, &auditor), &event(org, 2)).await;
        let stale = change(&ana, &auditor);
        let stale = db.change_principal(&stale, &event(org, 3)).await;
        user(&db, org, 2).await;
        let twin = Principal { name: "person 2".to_owned(), ..auditor.clone() };
        let taken = db.change_principal(&change(&auditor, &twin), &event(org, 4)).await;
        let again = db.record_new_principal(&ana, &event(org, 5)).await;

        assert_eq!((done, stale), (Ok(Changed::Done), Ok(Changed::Stale)));
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
        assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
        assert_eq!(db.find_principal(org, ana.id).await.unwrap(), Some(auditor));
        db.seal(org, leaf).await.unwrap();
        assert_eq!(whole_log(&db, org).await.len(), 2);
    }

    async fn the_last_admin_is_kept_but_for_the_operator(db: Database) {
        let org = org(&db, 1).await;
        let [one, two] = [1, 2].map(|n| with_role(&principal(org, n), Role::Admin));
        for admin in [&one, &two] {
            db.create_principal(admin).await.unwrap();
        }
        let off = |it: &Principal| Principal { disabled_at: Some(NOW), ..it.clone() };
        let [off_one, off_two] = [off(&one), off(&two)];
        let change = |before, after| PrincipalChange { before, after, last_admin: LastAdmin::Kept };

        let events = [1, 2].map(|n| event(org, n));
        let changes = [change(&one, &off_one), change(&two, &off_two)];
        let (first, second) = tokio::join!(
            db.change_principal(&changes[0], &events[0]),
            db.change_principal(&changes[1], &events[1]),
        );

        let mut both = [first.clone().unwrap(), second.unwrap()];
        both.sort_by_key(|it| *it == Changed::LastAdmin);
        assert_eq!(both, [Changed::Done, Changed::LastAdmin], "whoever comes first");
        let left = if first == Ok(Changed::Done) { &two } else { &one };
        let after = off(left);
        let change =
            PrincipalChange { before: left, after: &after, last_admin: LastAdmin::Dispensable };
        let done = db.change_principal(&change, &event(org, 3)).await;
        assert_eq!(done, Ok(Changed::Done));
    }

    async fn pages_of_principals_are_filtered(db: Database) {
        let [org, other] = orgs(&db).await;
        user(&db, other, 9).await;
        for n in 1..=4 {
            let role = if n == 2 { Role::Admin } else { Role::Member };
            let mut principal = with_role(&principal(org, n), role);
            principal.disabled_at = (n == 3).then_some(NOW);
            db.create_principal(&principal).await.unwrap();
        }
        let of = async |page: PrincipalQuery| {
            let found = db.page_principals(org, &page).await.unwrap();
            found.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        let all = || PrincipalQuery { limit: 10, ..PrincipalQuery::default() };

        assert_eq!(of(all()).await.len(), 4);
        assert_eq!(of(PrincipalQuery { limit: 1, ..all() }).await, ["person 1"]);
        let after = Some(id("usr", 3));
        assert_eq!(of(PrincipalQuery { after, ..all() }).await, ["person 4"]);
        let role = Some(RoleName::Admin);
        assert_eq!(of(PrincipalQuery { role, ..all() }).await, ["person 2"]);
        assert_eq!(of(PrincipalQuery { disabled: Some(true), ..all() }).await, ["person 3"]);
        assert_eq!(of(PrincipalQuery { disabled: Some(false), ..all() }).await.len(), 3);
    }
}
