//! Tokens: looked up by hash, revoked with all that descends from them.

use crate::prelude::*;

on_both! {
    async fn a_token_is_found_by_its_hash_with_all_that_decides(db: Database) {
        let (org, user) = member(&db).await;
        let via = given::user(&db, org, 2).await;
        let parent = token(org, user, 1);
        let mut full = token(org, user, 2);
        full.kind = TokenKind::Service;
        full.via = Some(via);
        full.parent_id = Some(parent.id);
        full.scopes = ScopeSet::EMPTY.with(Scope::McpsRead);
        full.label = Some("claude-code".to_owned());
        full.method = AuthMethod::Oidc { trust: "acme-idp".to_owned() };
        full.allowed_cidrs = Some("10.0.0.0/8,2001:db8::/32".parse().unwrap());
        full.last_used_at = Some(NOW);
        full.dpop_jkt = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k".parse().ok();

        db.insert_token(&parent, &hash(1)).await.unwrap();
        db.insert_token(&full, &hash(2)).await.unwrap();

        let known = db.find_token_by_hash(&hash(2)).await.unwrap().unwrap();
        assert_eq!(known.token, full);
        assert_eq!(Some(known.principal), db.find_principal(org, user).await.unwrap());
        assert_eq!(Some(known.org), db.find_org(org).await.unwrap());
        assert_eq!(db.find_token(org, full.id).await.unwrap(), Some(full));
        assert_eq!(db.find_token_by_hash(&hash(3)).await.unwrap(), None);
    }

    async fn many_tokens_are_found_at_once_as_each_is_alone(db: Database) {
        let orgs = orgs(&db).await;
        for (n, org) in [1, 2, 3].into_iter().zip([orgs[0], orgs[0], orgs[1]]) {
            let user = user(&db, org, n).await;
            let mut token = token(org, user, n);
            token.revoked_at = (n == 2).then_some(NOW);
            db.insert_token(&token, &hash(n)).await.unwrap();
        }

        let asked = [3, 4, 2, 1].map(token_id);
        let mut found = db.find_tokens(&asked).await.unwrap();
        let none = db.find_tokens(&[]).await.unwrap();

        found.sort_by_key(|known| known.token.id);
        let mut alone = Vec::new();
        for n in [1, 2, 3] {
            alone.extend(db.find_token_by_hash(&hash(n)).await.unwrap());
        }
        assert_eq!(found, alone);
        assert_eq!(found[1].token.revoked_at, Some(NOW));
        assert_eq!(none, []);
    }

    async fn a_change_of_role_or_state_shows_at_the_next_look(db: Database) {
        let (org, user) = member(&db).await;
        db.insert_token(&token(org, user, 1), &hash(1)).await.unwrap();

        db.set_role(org, user, Role::Auditor).await.unwrap();
        db.disable_principal(org, user, NOW).await.unwrap();
        db.disable_org(org, NOW).await.unwrap();

        let known = db.find_token_by_hash(&hash(1)).await.unwrap().unwrap();
        assert_eq!(known.principal.role, Role::Auditor);
        assert_eq!(known.principal.disabled_at, Some(NOW));
        assert_eq!(known.org.disabled_at, Some(NOW));
    }

    async fn a_hash_is_stored_once(db: Database) {
        let (org, user) = member(&db).await;
        db.insert_token(&token(org, user, 1), &hash(1)).await.unwrap();

        let twin = db.insert_token(&token(org, user, 2), &hash(1)).await;

        assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
    }

    async fn revoking_takes_the_grant_and_all_that_came_from_it(db: Database) {
        let (org, user) = member(&db).await;
        // 1 ─ 2 are one grant; 3 comes from 2, 4 from 3; 5 is of 4's grant; 6 stands alone and 1
        // came from it.
        let mut tokens: Vec<_> = (0..=6).map(|n| token(org, user, n)).collect();
        tokens[1].parent_id = Some(token_id(6));
        tokens[2].grant_id = tokens[1].grant_id;
        tokens[3].parent_id = Some(token_id(2));
        tokens[4].parent_id = Some(token_id(3));
        tokens[5].grant_id = tokens[4].grant_id;
        for n in [6, 1, 2, 3, 4, 5, 0] {
            db.insert_token(&tokens[n as usize], &hash(n)).await.unwrap();
        }

        let first = db.revoke_token(org, token_id(1), NOW).await.unwrap();
        let again = db.revoke_token(org, token_id(1), NOW.plus_seconds(9)).await.unwrap();

        assert_eq!((first, again), (Some(4), Some(0)));
        for n in 0..=6 {
            let found = db.find_token(org, token_id(n)).await.unwrap().unwrap();
            assert_eq!(found.revoked_at, (1..=5).contains(&n).then_some(NOW), "token {n}");
        }
        assert_eq!(db.revoke_token(org, token_id(7), NOW).await.unwrap(), None);
    }

    async fn tokens_are_listed_in_pages(db: Database) {
        let org = org(&db, 1).await;
        let users = [user(&db, org, 1).await, user(&db, org, 2).await];
        for n in 0..6u32 {
            let user = users[usize::try_from(n % 2).unwrap()];
            db.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
        }
        let page = TokenPage { principal_id: None, after: None, limit: 4 };
        let own = TokenPage { principal_id: Some(users[1]), after: Some(token_id(1)), limit: 9 };

        let first = db.list_tokens(org, page).await.unwrap();
        let rest = TokenPage { after: Some(first[3].id), ..page };
        let second = db.list_tokens(org, rest).await.unwrap();
        let of_one = db.list_tokens(org, own).await.unwrap();

        let ids = |tokens: &[TokenRecord]| tokens.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(&first), [0, 1, 2, 3].map(token_id));
        assert_eq!(ids(&second), [4, 5].map(token_id));
        assert_eq!(ids(&of_one), [3, 5].map(token_id));
    }

    async fn the_last_use_never_runs_backwards(db: Database) {
        let (org, user) = member(&db).await;
        db.insert_token(&token(org, user, 1), &hash(1)).await.unwrap();
        db.insert_token(&token(org, user, 2), &hash(2)).await.unwrap();
        let later = NOW.plus_seconds(60);

        db.touch_tokens(&[(token_id(1), later), (token_id(2), NOW)]).await.unwrap();
        db.touch_tokens(&[(token_id(1), NOW), (token_id(9), NOW)]).await.unwrap();

        for (n, used) in [(1, later), (2, NOW)] {
            let found = db.find_token(org, token_id(n)).await.unwrap().unwrap();
            assert_eq!(found.last_used_at, Some(used), "token {n}");
        }
    }

    async fn pages_of_tokens_tell_each_state(db: Database) {
        let (org, user) = member(&db).await;
        let ben = given::user(&db, org, 2).await;
        let other = given::org(&db, 2).await;
        let foreign = given::user(&db, other, 3).await;
        db.insert_token(&token(other, foreign, 9), &hash(9)).await.unwrap();
        for n in 1..=4 {
            let mut made = token(org, if n == 4 { ben } else { user }, n);
            match n {
                2 => made.expires_at = NOW,
                3 => made.revoked_at = Some(NOW),
                _ => {}
            }
            db.insert_token(&made, &hash(n)).await.unwrap();
        }
        db.disable_principal(org, ben, NOW).await.unwrap();
        let all = || TokenQuery { now: NOW, limit: 10, ..TokenQuery::default() };
        let of = async |query: TokenQuery| {
            let found = db.page_tokens(org, &query).await.unwrap();
            found.tokens.into_iter().map(|it| (it.token.id, it.state)).collect::<Vec<_>>()
        };
        let id = token_id;

        let states = [
            (id(1), ListedState::Live),
            (id(2), ListedState::Expired),
            (id(3), ListedState::Revoked),
            (id(4), ListedState::PrincipalDisabled),
        ];
        assert_eq!(of(all()).await, states);
        for (token, state) in states {
            assert_eq!(of(TokenQuery { state: Some(state), ..all() }).await, [(token, state)]);
        }
        let of_ben = TokenQuery { principal: Some(ben), ..all() };
        assert_eq!(of(of_ben).await, [states[3]]);
        assert_eq!(of(TokenQuery { kind: Some(TokenKind::Service), ..all() }).await, []);
        assert_eq!(of(TokenQuery { after: Some(id(2)), limit: 1, ..all() }).await, [states[2]]);
    }
}
