//! Browser sessions and login links.

use crate::authorization::code;
use crate::prelude::*;

pub(crate) fn session(org_id: OrgId, principal_id: PrincipalId, n: u32) -> BrowserSession {
    BrowserSession {
        id: id("ses", n),
        org_id,
        principal_id,
        method: AuthMethod::Operator,
        issuer: None,
        login: None,
        acr: None,
        amr: BTreeSet::new(),
        auth_time: NOW,
        created_at: NOW,
        last_seen_at: NOW,
        ends_at: NOW.plus_seconds(100),
        ended_at: None,
    }
}

fn page(now: Timestamp) -> SessionQuery {
    SessionQuery { limit: 10, now, ..SessionQuery::default() }
}

on_both! {
    async fn a_session_is_found_by_its_hash_as_it_was_opened(db: Database) {
        let (org, user) = member(&db).await;
        let said = Login { mfa: true, ..Login::default() };
        let session = BrowserSession {
            method: AuthMethod::Oidc { trust: "people".to_owned() },
            issuer: Some("https://login.acme.example".to_owned()),
            login: Some(LoginRecord { said, said_at: NOW }),
            acr: Some("phr".to_owned()),
            amr: ["pwd".to_owned(), "otp".to_owned()].into(),
            ..session(org, user, 1)
        };

        assert!(db.open_session(&session, &[1; 32], &[]).await.unwrap());

        assert_eq!(db.find_session_by_hash(&[1; 32]).await.unwrap().as_ref(), Some(&session));
        assert_eq!(db.find_session_by_hash(&[2; 32]).await.unwrap(), None);
        assert_eq!(db.find_session(org, session.id).await.unwrap(), Some(session));
    }

    async fn a_proof_opens_one_session(db: Database) {
        let (org, user) = member(&db).await;
        let once = Assertion { digest: [7; 32], expires_at: NOW };

        let first = db.open_session(&session(org, user, 1), &[1; 32], &[once]).await.unwrap();
        let second = db.open_session(&session(org, user, 2), &[2; 32], &[once]).await.unwrap();

        assert!(first && !second);
        assert_eq!(db.find_session_by_hash(&[2; 32]).await.unwrap(), None);
    }

    async fn nobody_whose_access_ended_gets_a_session_or_a_code(db: Database) {
        let (org, user) = member(&db).await;
        db.disable_principal(org, user, NOW).await.unwrap();
        let kept = code(org, user, id("con", 1), 1);

        let opened = db.open_session(&session(org, user, 1), &[1; 32], &[]).await.unwrap();
        db.insert_code(&kept).await.unwrap();

        assert!(!opened);
        assert_eq!(db.find_session_by_hash(&[1; 32]).await.unwrap(), None);
        assert_eq!(db.find_code(&kept.hash).await.unwrap(), None);
    }

    async fn sessions_that_ended_are_not_listed_and_those_of_other_orgs_neither(db: Database) {
        let (org, user) = member(&db).await;
        let other = given::org(&db, 2).await;
        for n in 1..=4 {
            let hash = [u8::try_from(n).unwrap(); 32];
            db.open_session(&session(org, user, n), &hash, &[]).await.unwrap();
        }
        let later = NOW.plus_seconds(50);
        let id = |n| session(org, user, n).id;

        let ended = db.end_session(org, id(2), later).await.unwrap();
        let again = db.end_session(org, id(2), later).await.unwrap();
        let elsewhere = db.end_session(other, id(3), later).await.unwrap();
        db.touch_session(org, id(3), later, NOW.plus_seconds(200)).await.unwrap();
        db.touch_session(org, id(3), NOW, NOW).await.unwrap();

        assert!(ended && !again && !elsewhere);
        let listed = async |page| -> Vec<_> {
            let found = db.list_sessions(org, &page).await.unwrap();
            found.into_iter().map(|session| session.id).collect()
        };
        assert_eq!(listed(page(later)).await, [id(1), id(3), id(4)]);
        let rest = SessionQuery { after: Some(id(1)), limit: 1, ..page(later) };
        assert_eq!(listed(rest).await, [id(3)]);
        let of_nobody = SessionQuery { principal: Some(given::id("usr", 9)), ..page(later) };
        assert!(listed(of_nobody).await.is_empty());
        assert_eq!(listed(page(NOW.plus_seconds(150))).await, [id(3)]);
        assert!(db.list_sessions(other, &page(later)).await.unwrap().is_empty());
        assert_eq!(db.forget_sessions(NOW.plus_seconds(150)).await.unwrap(), 3);
    }

    async fn a_principal_that_is_disabled_loses_its_logins_for_good(db: Database) {
        let (org_id, principal_id) = member(&db).await;
        let other = user(&db, org_id, 2).await;
        for (n, who) in [(1, principal_id), (2, other)] {
            let hash = [u8::try_from(n).unwrap(); 32];
            db.open_session(&session(org_id, who, n), &hash, &[]).await.unwrap();
            db.insert_code(&code(org_id, who, id("con", 1), n)).await.unwrap();
        }
        let enabled = db.find_principal(org_id, principal_id).await.unwrap().unwrap();
        let disabled = Principal { disabled_at: Some(NOW), ..enabled.clone() };

        for (n, before, after) in [(1, &enabled, &disabled), (2, &disabled, &enabled)] {
            let change = PrincipalChange { before, after, last_admin: LastAdmin::Kept };
            let changed = db.change_principal(&change, &event(org_id, n)).await;
            assert_eq!(changed, Ok(Changed::Done));
        }

        let mut lives = Vec::new();
        for n in 1..=2 {
            let session = db.find_session_by_hash(&[n; 32]).await.unwrap().unwrap();
            let code = db.find_code(&[n; 32]).await.unwrap().unwrap();
            lives.push((session.ended_at.is_none(), code.expires_at > NOW));
        }
        assert_eq!(lives, [(false, false), (true, true)]);
    }

    async fn a_link_is_taken_once_in_its_time(db: Database) {
        let (org_id, principal_id) = member(&db).await;
        let expires_at = NOW.plus_seconds(300);
        let link = LoginLink { org_id, principal_id, expires_at };
        db.insert_login_link(link, &[1; 32]).await.unwrap();
        db.insert_login_link(link, &[2; 32]).await.unwrap();

        assert_eq!(db.find_login_link(&[1; 32], NOW).await.unwrap(), Some(link));
        assert_eq!(db.take_login_link(&[1; 32], expires_at).await.unwrap(), None);
        assert_eq!(db.take_login_link(&[1; 32], NOW).await.unwrap(), Some(link));
        assert_eq!(db.take_login_link(&[1; 32], NOW).await.unwrap(), None);
        assert_eq!(db.find_login_link(&[1; 32], NOW).await.unwrap(), None);
        assert_eq!(db.forget_login_links(expires_at).await.unwrap(), 1);
        assert_eq!(db.find_login_link(&[2; 32], NOW).await.unwrap(), None);
    }
}
