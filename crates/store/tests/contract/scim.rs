//! People and groups that an identity provider keeps.

use crate::prelude::*;

/// The `n`th person, not stored.
fn person(org: OrgId, n: u32) -> ScimUser {
    ScimUser {
        principal: principal(org, n),
        pushed_by: id("sa", 1),
        attributes: UserAttributes {
            user_name: format!("Person{n}@Acme.example"),
            external_id: Some(format!("00u{n}")),
            display_name: Some(format!("Person {n}")),
            ..UserAttributes::default()
        },
        created_at: NOW,
        changed_at: NOW,
        deactivated_at: None,
        deleted_at: None,
        revision: 1,
    }
}

/// Stores a new person.
async fn add(store: &Store, user: &ScimUser, event: u32) -> Result<ScimWritten, StoreError> {
    let change =
        ScimUserChange { principal: None, before: None, after: user, access_ends_at: None };
    let org = user.principal.org_id;
    store.change_scim_user(&change, &given::event(org, event)).await
}

async fn added(store: &Store, org: OrgId, n: u32) -> ScimUser {
    let user = person(org, n);
    assert_eq!(add(store, &user, n).await, Ok(ScimWritten::Done));
    user
}

/// Changes a person.
async fn change(
    store: &Store,
    before: &ScimUser,
    after: &ScimUser,
    event: u32,
) -> Result<ScimWritten, StoreError> {
    let change = ScimUserChange {
        principal: Some(&before.principal),
        before: Some(before),
        after,
        access_ends_at: after.deactivated_at,
    };
    store.change_scim_user(&change, &given::event(before.principal.org_id, event)).await
}

/// The person without access, one revision on.
fn ended(user: &ScimUser) -> ScimUser {
    let principal = Principal { disabled_at: Some(NOW), ..user.principal.clone() };
    let revision = user.revision + 1;
    ScimUser { principal, deactivated_at: Some(NOW), revision, ..user.clone() }
}

fn group(org_id: OrgId, n: u32, name: &str) -> ScimGroup {
    ScimGroup {
        id: id::<GroupId>("grp", n),
        org_id,
        pushed_by: id("sa", 1),
        attributes: GroupAttributes { display_name: name.to_owned(), external_id: None },
        created_at: NOW,
        changed_at: NOW,
        revision: 1,
        members: 0,
    }
}

/// Makes a group of these people.
async fn grouped(
    store: &Store,
    group: &ScimGroup,
    members: &BTreeSet<PrincipalId>,
    event: u32,
) -> Result<ScimWritten, StoreError> {
    let change = ScimGroupChange { after: Some(group), added: members, ..change_of(group.org_id) };
    commit(store, change, event).await
}

/// A change that makes nothing of nothing, if it is as it was read.
fn change_of(org: OrgId) -> ScimGroupChange<'static> {
    static NOBODY: BTreeSet<PrincipalId> = BTreeSet::new();
    ScimGroupChange {
        org,
        before: None,
        guard: GroupGuard::Revision,
        after: None,
        added: &NOBODY,
        added_of: None,
        removed: &NOBODY,
    }
}

async fn commit(
    store: &Store,
    change: ScimGroupChange<'_>,
    event: u32,
) -> Result<ScimWritten, StoreError> {
    store.change_scim_group(&change, &given::event(change.org, event)).await
}

async fn groups_of(store: &Store, user: &ScimUser) -> BTreeSet<String> {
    let found = store.find_principal(user.principal.org_id, user.principal.id).await.unwrap();
    found.unwrap().provisioned_groups
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

on_both! {
    async fn people_are_found_by_their_keys_in_their_org_alone(db: Database) {
        let [org, other] = orgs(&db).await;
        let ana = added(&db, org, 1).await;
        added(&db, org, 2).await;
        let find = async |org, join, value| db.find_scim_user_by(org, join, value).await.unwrap();

        assert_eq!(db.find_scim_user(org, ana.principal.id).await.unwrap(), Some(ana.clone()));
        assert_eq!(db.find_scim_user(other, ana.principal.id).await.unwrap(), None);
        let named = find(org, JoinKey::UserName, "PERSON1@acme.EXAMPLE").await;
        assert_eq!(named, Some(ana.clone()));
        assert_eq!(find(org, JoinKey::ExternalId, "00u1").await, Some(ana.clone()));
        assert_eq!(find(org, JoinKey::ExternalId, "00U1").await, None);
        assert_eq!(find(other, JoinKey::ExternalId, "00u1").await, None);
        let all = ScimUserFilter::default();
        let page = db.page_scim_users(org, &all, 1, 5).await.unwrap();
        assert_eq!((page.items.len(), page.total), (1, 2));
        let filter = ScimUserFilter {
            display_name: Some("person 1".to_owned()), active: Some(true), ..all.clone()
        };
        assert_eq!(db.page_scim_users(org, &filter, 0, 5).await.unwrap().items, std::slice::from_ref(&ana));
        let inactive = ScimUserFilter { active: Some(false), ..all };
        assert_eq!(db.page_scim_users(org, &inactive, 0, 5).await.unwrap().total, 0);
        // A name that another one has in any case, an id that another one has.
        let mut twin = person(org, 3);
        twin.attributes.user_name = "person1@ACME.example".to_owned();
        assert!(matches!(add(&db, &twin, 9).await, Err(StoreError::Conflict(_))));
        let mut twin = person(org, 3);
        twin.attributes.external_id.clone_from(&ana.attributes.external_id);
        assert!(matches!(add(&db, &twin, 9).await, Err(StoreError::Conflict(_))));
        assert_eq!(db.find_principal(org, twin.principal.id).await.unwrap(), None);
        assert_eq!(add(&db, &person(other, 4), 9).await, Ok(ScimWritten::Done));
    }

    async fn names_are_the_same_in_any_case_of_ascii_letters_and_no_others(db: Database) {
        let org = org(&db, 1).await;
        let mut mia = person(org, 1);
        mia.attributes.user_name = "Mik\u{c9}".to_owned();
        mia.attributes.display_name = Some("Mik\u{c9}".to_owned());
        assert_eq!(add(&db, &mia, 1).await, Ok(ScimWritten::Done));
        let find = async |name: &str| {
            let found = db.find_scim_user_by(org, JoinKey::UserName, name).await.unwrap();
            found.map(|it| it.principal.id)
        };
        assert_eq!(find("mIK\u{c9}").await, Some(mia.principal.id));
        for other in ["mik\u{e9}", "mi\u{212a}\u{c9}"] {
            assert_eq!(find(other).await, None, "{other}");
        }
        let filter = ScimUserFilter { display_name: Some("MIK\u{c9}".to_owned()), ..ScimUserFilter::default() };
        let found = db.page_scim_users(org, &filter, 0, 5).await.unwrap();
        assert_eq!(found.items, [mia]);
    }

    async fn a_change_is_made_with_its_event_if_nothing_changed_meanwhile(db: Database) {
        let org = org(&db, 1).await;
        let ana = added(&db, org, 1).await;
        let mut next = ScimUser { revision: 2, ..ana.clone() };
        next.attributes.display_name = None;

        assert_eq!(change(&db, &ana, &next, 2).await, Ok(ScimWritten::Done));
        assert_eq!(change(&db, &ana, &next, 3).await, Ok(ScimWritten::Stale));
        db.disable_principal(org, ana.principal.id, NOW).await.unwrap();
        let last = ScimUser { revision: 3, ..next.clone() };
        assert_eq!(change(&db, &next, &last, 4).await, Ok(ScimWritten::Stale));

        db.seal(org, leaf).await.unwrap();
        assert_eq!(whole_log(&db, org).await.len(), 2);
    }

    async fn the_access_of_one_person_ends_and_of_no_other(db: Database) {
        let org = org(&db, 1).await;
        let [ana, ben] = [added(&db, org, 1).await, added(&db, org, 2).await];
        let of = |user: &ScimUser, n| token(org, user.principal.id, n);
        let mut delegated = of(&ben, 3);
        delegated.via = Some(ana.principal.id);
        let mut narrowed = of(&ben, 4);
        narrowed.parent_id = Some(token_id(3));
        for (token, n) in [(of(&ana, 1), 1), (of(&ben, 2), 2), (delegated, 3), (narrowed, 4)] {
            db.insert_token(&token, &hash(n)).await.unwrap();
        }

        assert_eq!(change(&db, &ana, &ended(&ana), 9).await, Ok(ScimWritten::Done));

        let mut revoked = Vec::new();
        for n in 1..=4 {
            let known = db.find_token_by_hash(&hash(n)).await.unwrap().unwrap();
            revoked.push(known.token.revoked_at.is_some());
        }
        assert_eq!(revoked, [true, false, true, true]);
    }

    async fn the_last_admin_is_kept_by_scim(db: Database) {
        let org = org(&db, 1).await;
        let mut root = person(org, 1);
        root.principal.role = Role::Admin;
        assert_eq!(add(&db, &root, 1).await, Ok(ScimWritten::Done));

        assert_eq!(change(&db, &root, &ended(&root), 2).await, Ok(ScimWritten::LastAdmin));
        assert_eq!(db.find_scim_user(org, root.principal.id).await.unwrap(), Some(root));
    }

    async fn a_deleted_person_is_gone_and_can_be_the_same_again(db: Database) {
        let org = org(&db, 1).await;
        let ana = added(&db, org, 1).await;
        let finance = group(org, 1, "finance");
        let members = BTreeSet::from([ana.principal.id]);
        assert_eq!(grouped(&db, &finance, &members, 2).await, Ok(ScimWritten::Done));
        let gone = ScimUser { deleted_at: Some(NOW), ..ended(&ana) };

        assert_eq!(change(&db, &ana, &gone, 3).await, Ok(ScimWritten::Done));

        assert_eq!(db.find_scim_user(org, ana.principal.id).await.unwrap(), None);
        assert!(groups_of(&db, &ana).await.is_empty());
        assert!(db.scim_members(org, &[finance.id]).await.unwrap().is_empty());
        let found = db.find_deleted_scim_user(org, &ana.attributes).await.unwrap();
        assert_eq!(found.map(|it| it.principal.id), Some(ana.principal.id));
        let mut renamed = ana.attributes.clone();
        renamed.external_id = None;
        assert_eq!(db.find_deleted_scim_user(org, &renamed).await.unwrap(), None);
        let added = BTreeSet::from([ana.principal.id]);
        let ops = group(org, 2, "ops");
        assert_eq!(grouped(&db, &ops, &added, 4).await, Ok(ScimWritten::UnknownMember));
        // Another one may have the name by now.
        let mut twin = person(org, 2);
        twin.attributes = UserAttributes { external_id: None, ..ana.attributes.clone() };
        assert_eq!(add(&db, &twin, 5).await, Ok(ScimWritten::Done));
    }

    async fn principals_have_the_names_of_their_groups(db: Database) {
        let [org, other] = orgs(&db).await;
        let [ana, ben] = [added(&db, org, 1).await, added(&db, org, 2).await];
        let stranger = added(&db, other, 3).await;
        let ids = |users: &[&ScimUser]| users.iter().map(|it| it.principal.id).collect::<BTreeSet<_>>();
        let mut finance = group(org, 1, "finance \"A\"");
        db.insert_token(&token(org, ana.principal.id, 1), &hash(1)).await.unwrap();

        let both = ids(&[&ana, &ben]);
        assert_eq!(grouped(&db, &finance, &both, 11).await, Ok(ScimWritten::Done));
        let theirs = ids(&[&stranger]);
        let ops = group(org, 2, "ops");
        assert_eq!(grouped(&db, &ops, &theirs, 12).await, Ok(ScimWritten::UnknownMember));
        let twin = group(org, 3, "FINANCE \"a\"");
        let twin = grouped(&db, &twin, &BTreeSet::new(), 13).await;
        assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");

        assert_eq!(groups_of(&db, &ana).await, set(&["finance \"A\""]));
        let known = db.find_token_by_hash(&hash(1)).await.unwrap().unwrap();
        assert_eq!(known.principal.all_groups(), set(&["finance \"A\""]));
        let asked = set(&["finance \"A\"", "ops"]);
        assert_eq!(db.unnamed_groups(org, &asked).await.unwrap(), set(&["ops"]));
        assert_eq!(db.unnamed_groups(other, &asked).await.unwrap(), asked);
        finance.members = 2;
        assert_eq!(db.find_scim_group(org, finance.id).await.unwrap(), Some(finance.clone()));
        assert_eq!(db.find_scim_group(other, finance.id).await.unwrap(), None);
        let filter = ScimGroupFilter { display_name: Some("Finance \"A\"".to_owned()), ..ScimGroupFilter::default() };
        assert_eq!(db.page_scim_groups(org, &filter, 0, 5).await.unwrap().total, 1);

        // Renamed, and without Ben.
        let mut renamed = ScimGroup { revision: 2, ..finance.clone() };
        renamed.attributes.display_name = "treasury".to_owned();
        let (without_ana, without_ben) = (ids(&[&ana]), ids(&[&ben]));
        let (before, after) = (Some(&finance), Some(&renamed));
        let change = ScimGroupChange { before, after, removed: &without_ben, ..change_of(org) };
        assert_eq!(commit(&db, change, 14).await, Ok(ScimWritten::Done));
        assert_eq!(commit(&db, change, 15).await, Ok(ScimWritten::Stale));
        assert_eq!(groups_of(&db, &ana).await, set(&["treasury"]));
        assert!(groups_of(&db, &ben).await.is_empty());

        let delete = ScimGroupChange { before: after, removed: &without_ana, ..change_of(org) };
        assert_eq!(commit(&db, delete, 16).await, Ok(ScimWritten::Done));
        assert!(groups_of(&db, &ana).await.is_empty());
        assert_eq!(db.find_scim_group(org, finance.id).await.unwrap(), None);
    }

    async fn members_are_added_and_removed_whatever_else_changed_meanwhile(db: Database) {
        let org = org(&db, 1).await;
        let [ana, ben] = [added(&db, org, 1).await, added(&db, org, 2).await];
        let one = |user: &ScimUser| BTreeSet::from([user.principal.id]);
        let read = group(org, 1, "finance");
        assert_eq!(grouped(&db, &read, &one(&ana), 11).await, Ok(ScimWritten::Done));
        let renamed = ScimGroup { revision: 2, ..group(org, 1, "treasury") };
        let before = Some(&read);
        let rename = ScimGroupChange { before, after: Some(&renamed), ..change_of(org) };
        assert_eq!(commit(&db, rename, 12).await, Ok(ScimWritten::Done));
        // By what was read before the group had another name.
        let (added, removed) = (&one(&ben), &one(&ana));
        let swap = async |after: &ScimGroup, event| {
            let (after, guard) = (Some(after), GroupGuard::Members);
            let change = ScimGroupChange { before, guard, after, added, removed, ..change_of(org) };
            commit(&db, change, event).await
        };
        let after = ScimGroup { revision: 2, ..group(org, 1, "finance") };
        let other = ScimGroup { pushed_by: id("sa", 2), ..after.clone() };

        assert_eq!(swap(&other, 13).await, Ok(ScimWritten::Stale), "the group is another account's");
        assert_eq!(swap(&after, 14).await, Ok(ScimWritten::Done));
        assert_eq!(swap(&after, 15).await, Ok(ScimWritten::Stale), "that was done already");

        let found = db.find_scim_group(org, read.id).await.unwrap().unwrap();
        assert_eq!((found.attributes.display_name.as_str(), found.revision), ("treasury", 3));
        assert!(groups_of(&db, &ana).await.is_empty());
        assert_eq!(groups_of(&db, &ben).await, set(&["treasury"]));
    }

    async fn members_are_only_people_of_the_account_that_may_add_them(db: Database) {
        let org = org(&db, 1).await;
        let [ana, ben] = [added(&db, org, 1).await, added(&db, org, 2).await];
        let members = BTreeSet::from([ana.principal.id, ben.principal.id]);
        let make = async |group: &ScimGroup, account, event| {
            let (after, added_of) = (Some(group), Some(id("sa", account)));
            let change = ScimGroupChange { after, added: &members, added_of, ..change_of(org) };
            commit(&db, change, event).await
        };

        let theirs = group(org, 1, "theirs");
        assert_eq!(make(&theirs, 2, 11).await, Ok(ScimWritten::UnknownMember));
        assert_eq!(db.find_scim_group(org, theirs.id).await.unwrap(), None);
        let ours = group(org, 2, "ours");
        assert_eq!(make(&ours, 1, 12).await, Ok(ScimWritten::Done));
        let found = db.find_scim_group(org, ours.id).await.unwrap();
        assert_eq!(found, Some(ScimGroup { members: 2, ..ours }));
    }

    async fn nobody_is_in_more_groups_than_may_be(db: Database) {
        let org = org(&db, 1).await;
        let ana = added(&db, org, 1).await;
        let members = BTreeSet::from([ana.principal.id]);
        for n in 1..=MAX_GROUPS_OF_USER {
            let group = group(org, n, &format!("group {n}"));
            let made = grouped(&db, &group, &members, 100 + n).await;
            assert_eq!(made, Ok(ScimWritten::Done));
        }

        let beyond = group(org, 999, "beyond");
        assert_eq!(grouped(&db, &beyond, &members, 999).await, Ok(ScimWritten::Full));
        assert_eq!(db.find_scim_group(org, beyond.id).await.unwrap(), None);
    }

    async fn a_person_is_joined_to_one_subject_of_any_issuer(db: Database) {
        let org = org(&db, 1).await;
        let [ana, ben] = [added(&db, org, 1).await, added(&db, org, 2).await];
        let subject = |subject| Identity { issuer: "https://idp.example", claim: "sub", subject };
        let link = async |user: &ScimUser, name, event| {
            let event = given::event(org, event);
            db.link_identity(user, subject(name), NOW, &event).await.unwrap()
        };
        let elsewhere = Identity { issuer: "https://other.example", ..subject("00umallory") };
        let by_mail = Identity { claim: "email", ..subject("00umallory") };

        assert!(link(&ana, "00u1", 11).await);
        assert!(!link(&ana, "00umallory", 12).await, "she is known by another subject");
        for other in [elsewhere, by_mail] {
            let event = event(org, 12);
            let linked = db.link_identity(&ana, other, NOW, &event).await.unwrap();
            assert!(!linked, "of whichever issuer and claim: {other:?}");
        }
        assert!(!link(&ben, "00u1", 13).await, "the subject is somebody else");
        let renamed = ScimUser { revision: 2, ..ben.clone() };
        assert_eq!(change(&db, &ben, &renamed, 15).await, Ok(ScimWritten::Done));
        assert!(!link(&ben, "00u2", 14).await, "the provider changed the person meanwhile");
        assert!(link(&renamed, "00u2", 14).await);

        let found = db.find_by_identity(org, subject("00u1")).await.unwrap();
        assert_eq!(found.map(|it| it.id), Some(ana.principal.id));
        assert_eq!(db.find_by_identity(org, subject("00umallory")).await.unwrap(), None);
        db.seal(org, leaf).await.unwrap();
        assert_eq!(whole_log(&db, org).await.len(), 5, "two people, a change, two links");
    }
}
