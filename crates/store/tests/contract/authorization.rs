//! Authorization codes, consents, and what clients were granted.

use crate::prelude::*;

fn client() -> ClientRef {
    ClientRef { id: "reg_1".to_owned(), kind: ClientKind::Registered, name: "App".to_owned() }
}

pub(crate) fn consent(org: OrgId, user: PrincipalId, n: u32) -> Consent {
    Consent {
        id: id("con", n),
        org_id: org,
        principal_id: user,
        client: client(),
        face: Face::All,
        scopes: ScopeSet::ALL,
        returns_to: "https://app.example/cb".to_owned(),
        remembered: true,
        created_at: NOW,
        renewed_at: NOW,
    }
}

/// A code whose tokens will be of the `n`th grant.
pub(crate) fn code(org: OrgId, user: PrincipalId, consent: ConsentId, n: u32) -> AuthorizationCode {
    AuthorizationCode {
        hash: [u8::try_from(n).unwrap(); 32],
        org_id: org,
        principal_id: user,
        grant_id: id("grn", n),
        granted: ClientGrant {
            client: client(),
            face: Face::All,
            consent: Some(consent),
            by_key: n > 1,
            client_id: (n > 1).then(|| "dcr_own".to_owned()),
        },
        redirect_uri: RedirectUri::parse("https://app.example/cb").unwrap(),
        challenge: CodeChallenge::from_stored([9; 32]),
        dpop_jkt: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k".parse().ok(),
        scopes: ScopeSet::ALL,
        method: AuthMethod::Oidc { trust: "idp".to_owned() },
        lineage: Lineage::login("idp", user),
        login: None,
        expires_at: NOW.plus_seconds(60),
        spent_at: None,
    }
}

/// Uses the code for a token with the number `n`.
async fn redeem(store: &Store, code: &AuthorizationCode, n: u32) -> Issued {
    let mut record = token(code.org_id, code.principal_id, n);
    record.grant_id = code.grant_id;
    let (client, code) = (Some(&code.granted), Some(&code.hash));
    let hash = hash(n);
    store.issue_tokens(Issue { client, code, ..issue(&record, &hash) }).await.unwrap()
}

on_both! {
    async fn a_code_is_read_back_and_used_once_by_any_number_at_once(db: Database) {
        let (org, user) = member(&db).await;
        let id = db.keep_consent(&consent(org, user, 1)).await.unwrap();
        let kept = code(org, user, id, 1);
        db.insert_code(&kept).await.unwrap();
        assert_eq!(db.find_code(&kept.hash).await.unwrap(), Some(kept.clone()));
        assert_eq!(db.find_code(&[0; 32]).await.unwrap(), None);

        let answers = at_once(1..=8, |n| {
            let store = db.store.clone();
            let kept = kept.clone();
            async move { redeem(&store, &kept, n).await }
        })
        .await;

        assert_eq!(answers.iter().filter(|got| **got == Issued::Done).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|got| **got == Issued::Replayed).count(), 7);
        let found = db.find_code(&kept.hash).await.unwrap().unwrap();
        assert_eq!(found.spent_at, Some(NOW));
        for _ in 0..2 {
            db.revoke_grant(org, kept.grant_id, NOW).await.unwrap();
        }
        let mut revoked = Vec::new();
        for n in 1..=8 {
            let bought = db.find_token_by_hash(&hash(n)).await.unwrap();
            revoked.extend(bought.map(|known| known.token.revoked_at));
        }
        assert_eq!(revoked, [Some(NOW)]);
    }

    async fn the_token_of_a_client_is_known_with_what_it_was_granted(db: Database) {
        let (org, user) = member(&db).await;
        let id = db.keep_consent(&consent(org, user, 1)).await.unwrap();
        let kept = code(org, user, id, 1);
        db.insert_code(&kept).await.unwrap();
        redeem(&db, &kept, 1).await;
        db.insert_token(&token(org, user, 2), &hash(2)).await.unwrap();

        let granted = db.find_token_by_hash(&hash(1)).await.unwrap().unwrap();
        let other = db.find_token_by_hash(&hash(2)).await.unwrap().unwrap();

        assert_eq!(granted.client, Some(kept.granted));
        assert_eq!(other.client, None);
    }

    async fn a_consent_takes_the_place_of_the_one_before_and_ends_its_tokens(db: Database) {
        let (org, user) = member(&db).await;
        let first = db.keep_consent(&consent(org, user, 1)).await.unwrap();
        let again = Consent { remembered: false, ..consent(org, user, 2) };
        assert_eq!(db.keep_consent(&again).await.unwrap(), first);
        let kept = code(org, user, first, 1);
        let unused = code(org, user, first, 2);
        for code in [&kept, &unused] {
            db.insert_code(code).await.unwrap();
        }
        redeem(&db, &kept, 1).await;

        let found = db.find_consent_to(org, user, &client(), &Face::All).await.unwrap();
        assert_eq!(found, Some(Consent { id: first, remembered: false, ..again }));
        let page = ConsentQuery { principal: Some(user), limit: 10, ..ConsentQuery::default() };
        assert_eq!(db.list_consents(org, &page).await.unwrap().len(), 1);
        let other = given::org(&db, 2).await;
        assert_eq!(db.find_consent(other, first).await.unwrap(), None);
        assert_eq!(db.withdraw_consent(other, first, NOW).await.unwrap(), 0);
        assert_eq!(db.withdraw_consent(org, first, NOW).await.unwrap(), 1);

        assert_eq!(db.find_consent(org, first).await.unwrap(), None);
        let token = db.find_token(org, token_id(1)).await.unwrap().unwrap();
        assert_eq!(token.revoked_at, Some(NOW));
        assert_eq!(redeem(&db, &unused, 3).await, Issued::ParentRevoked);
    }

    async fn a_client_is_consented_to_as_long_as_one_person_lets_it_in(db: Database) {
        let (org, user) = member(&db).await;
        let consenting = async |id: &str| db.find_consenting_org(id).await.unwrap();
        let uri = "https://app.example/cb";
        let to = async |id: &str, uri: &str| db.has_consented(org, user, id, uri).await.unwrap();
        assert!(consenting("reg_1").await.is_none() && !to("reg_1", uri).await);

        let consent = db.keep_consent(&consent(org, user, 1)).await.unwrap();

        assert_eq!((consenting("reg_1").await, consenting("reg_2").await), (Some(org), None));
        assert!(to("reg_1", uri).await && !to("reg_1", "warp://cb").await);
        assert!(!to("reg_2", uri).await);
        db.withdraw_consent(org, consent, NOW).await.unwrap();
        assert!(consenting("reg_1").await.is_none() && !to("reg_1", uri).await);
    }

    async fn codes_are_forgotten_once_they_are_old(db: Database) {
        let (org, user) = member(&db).await;
        db.insert_code(&code(org, user, id("con", 1), 1)).await.unwrap();

        assert_eq!(db.forget_codes(NOW.plus_seconds(60)).await.unwrap(), 0);
        assert_eq!(db.forget_codes(NOW.plus_seconds(61)).await.unwrap(), 1);
    }
}
