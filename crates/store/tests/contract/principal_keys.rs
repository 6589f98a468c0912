//! Public keys of service accounts.

use serde_json::json;

use crate::prelude::*;

/// The `n`th service account, stored.
async fn account(store: &Store, org: OrgId, n: u32) -> PrincipalId {
    let principal = Principal {
        id: id("sa", n),
        role: Role::Service(ScopeSet::ALL),
        name: format!("account {n}"),
        ..principal(org, n)
    };
    store.create_principal(&principal).await.unwrap();
    principal.id
}

/// The `n`th key.
fn key(org_id: OrgId, principal_id: PrincipalId, n: u8) -> PrincipalKey {
    const POINTS: [&str; 10] = [
        "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w",
        "gTl3Dqh9F19Wo1Rmw0x-zMuNipG07jeiXfYPW4_Js5Q",
        "7UkoxijRwsbq6QM4kFmVYSlZJzpcY_k2NsFGFKyHN9E",
        "ypOsFwUYcHHWe4PH_w7-gQjo7EUwV113JoeTM9vavnw",
        "bnoc3Smwt4_ROvTFWY_v9O8qlxZuPKby5Pv8zYBQW_E",
        "iodf_x6zhFFXes1a_uQFRWVo3XyJ4JCGOgVXvHr0nxc",
        "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw",
        "E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o",
        "_RckOFqgx1tk-3jNYC-h2ZH96_drE8WO1wLqyDXp9hg",
        "Q6cucUQBdi32a2jCbfvfJoKq7J8kdOykYT5CSg-6_Tw",
    ];
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": POINTS[usize::from(n)] });
    PrincipalKey {
        org_id,
        principal_id,
        key: PublicKey::of_jwk(&jwk).unwrap(),
        created_at: NOW.plus_seconds(i64::from(n)),
        last_used_at: None,
    }
}

fn bought(key: &PrincipalKey, n: u32) -> TokenRecord {
    let method = AuthMethod::Key { thumbprint: key.key.thumbprint().to_owned() };
    TokenRecord { method, ..token(key.org_id, key.principal_id, n) }
}

/// Issues the token `n` that the key buys.
async fn buy(store: &Store, key: &PrincipalKey, n: u32) -> Issued {
    exchange(store, &bought(key, n), n).await
}

on_both! {
    async fn keys_are_added_once_and_listed_by_age(db: Database) {
        let org = org(&db, 1).await;
        let ci = account(&db, org, 1).await;
        let first = key(org, ci, 0);
        let second = key(org, ci, 1);

        for (new, wanted) in
            [(&second, KeyAdded::Done), (&first, KeyAdded::Done), (&first, KeyAdded::Known)]
        {
            assert_eq!(db.add_principal_key(new).await.unwrap(), wanted);
        }

        let listed = db.list_principal_keys(org, ci).await.unwrap();
        assert_eq!(listed, [first.clone(), second]);
        let spent = bought(&first, 1);
        db.insert_token(&spent, &hash(1)).await.unwrap();
        let listed = db.list_principal_keys(org, ci).await.unwrap();
        assert_eq!(listed[0].last_used_at, Some(NOW));
        assert_eq!(listed[1].last_used_at, None);
        let found = db.find_token(org, spent.id).await.unwrap();
        assert_eq!(found, Some(spent));
    }

    async fn an_account_has_eight_keys_at_most_also_when_they_come_at_once(db: Database) {
        let org = org(&db, 1).await;
        let ci = account(&db, org, 1).await;
        let other = account(&db, org, 2).await;
        let keys: Vec<_> = (0..10).map(|n| key(org, ci, n)).collect();

        let added = keys.iter().map(|key| db.add_principal_key(key));
        let added = futures_util::future::join_all(added).await;

        let full = added.iter().filter(|it| matches!(it, Ok(KeyAdded::Full))).count();
        assert_eq!(full, keys.len() - MAX_PRINCIPAL_KEYS, "{added:?}");
        let listed = db.list_principal_keys(org, ci).await.unwrap();
        assert_eq!(listed.len(), MAX_PRINCIPAL_KEYS);
        let of_other = key(org, other, 0);
        assert_eq!(db.add_principal_key(&of_other).await.unwrap(), KeyAdded::Done);
    }

    async fn a_removed_key_takes_along_what_it_bought_and_nothing_else(db: Database) {
        let org = org(&db, 1).await;
        let ci = account(&db, org, 1).await;
        let first = key(org, ci, 0);
        let second = key(org, ci, 1);
        for key in [&first, &second] {
            db.add_principal_key(key).await.unwrap();
        }
        let child = TokenRecord { parent_id: Some(token_id(1)), ..token(org, ci, 3) };
        for (token, n) in [(bought(&first, 1), 1), (bought(&second, 2), 2), (child, 3)] {
            db.insert_token(&token, &hash(n)).await.unwrap();
        }
        let thumbprint = first.key.thumbprint();

        let removed = db.remove_principal_key(org, ci, thumbprint, NOW).await.unwrap();

        assert_eq!(removed, Some(2));
        for (n, revoked) in [(1, true), (2, false), (3, true)] {
            let token = db.find_token(org, token_id(n)).await.unwrap().unwrap();
            assert_eq!(token.revoked_at.is_some(), revoked, "{n}");
        }
        let again = db.remove_principal_key(org, ci, thumbprint, NOW).await.unwrap();
        assert_eq!(again, None);
        assert_eq!(db.list_principal_keys(org, ci).await.unwrap().len(), 1);
    }

    async fn a_key_that_is_gone_buys_nothing(db: Database) {
        let org = org(&db, 1).await;
        let [ci, other] = [account(&db, org, 1).await, account(&db, org, 2).await];
        let [first, second] = [key(org, ci, 0), key(org, ci, 1)];
        // The same key of another account helps nobody.
        for key in [&first, &second, &key(org, other, 0)] {
            db.add_principal_key(key).await.unwrap();
        }
        assert_eq!(buy(&db, &first, 1).await, Issued::Done);
        db.remove_principal_key(org, ci, first.key.thumbprint(), NOW).await.unwrap();

        assert_eq!(buy(&db, &first, 2).await, Issued::PrincipalEnded);
        assert_eq!(db.find_token(org, token_id(2)).await.unwrap(), None);
        assert_eq!(buy(&db, &second, 3).await, Issued::Done);
    }

    async fn no_token_outlives_a_key_that_is_removed_at_the_same_moment(db: Database) {
        let org = org(&db, 1).await;
        let ci = account(&db, org, 1).await;
        for n in 0..8 {
            let key = key(org, ci, n);
            db.add_principal_key(&key).await.unwrap();
            let n = u32::from(n);
            let remove = db.remove_principal_key(org, ci, key.key.thumbprint(), NOW);

            let (removed, issued) = futures_util::future::join(remove, buy(&db, &key, n)).await;

            let token = db.find_token(org, token_id(n)).await.unwrap();
            assert!(token.is_none_or(|token| token.revoked_at.is_some()), "{removed:?} {issued:?}");
        }
    }

    async fn another_org_sees_and_removes_no_key(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        let ci = account(&db, theirs, 1).await;
        let key = key(theirs, ci, 0);
        db.add_principal_key(&key).await.unwrap();
        let thumbprint = key.key.thumbprint();

        assert!(db.list_principal_keys(ours, ci).await.unwrap().is_empty());
        assert_eq!(db.remove_principal_key(ours, ci, thumbprint, NOW).await.unwrap(), None);
        let misplaced = PrincipalKey { org_id: ours, ..key };
        assert!(db.add_principal_key(&misplaced).await.is_err());
        assert_eq!(db.list_principal_keys(theirs, ci).await.unwrap().len(), 1);
        let owner = db.find_key_owner(ci).await.unwrap().unwrap();
        assert_eq!(owner.org_id, theirs);
        assert_eq!(db.find_key_owner(id("sa", 9)).await.unwrap(), None);
    }

    async fn an_assertion_is_used_once_also_by_two_at_the_same_moment(db: Database) {
        let one = Assertion { digest: [1; 32], expires_at: NOW.plus_seconds(60) };
        let other = Assertion { digest: [2; 32], ..one };

        let race = (0..8).map(|_| db.use_assertion(one));
        let race = futures_util::future::join_all(race).await;

        assert_eq!(race.iter().filter(|it| matches!(it, Ok(true))).count(), 1, "{race:?}");
        assert!(db.use_assertion(other).await.unwrap());
    }

    async fn many_assertions_are_used_together_and_each_once(db: Database) {
        let of = |n: u8| Assertion { digest: [n; 32], expires_at: NOW.plus_seconds(60) };
        assert!(db.use_assertion(of(1)).await.unwrap());

        let used = db.use_assertions(&[of(3), of(1), of(2), of(3)]).await.unwrap();
        let race = (0..8).map(|n| {
            let store = db.store.clone();
            // Two lists that share members, in opposite orders.
            let list = if n % 2 == 0 { [of(8), of(9)] } else { [of(9), of(8)] };
            async move { store.use_assertions(&list).await.unwrap() }
        });
        let race = futures_util::future::join_all(race).await;

        assert_eq!(used, [true, false, true, false]);
        assert_eq!(race.concat().iter().filter(|first| **first).count(), 2, "{race:?}");
        assert_eq!(db.use_assertions(&[]).await.unwrap(), Vec::<bool>::new());
    }
}
