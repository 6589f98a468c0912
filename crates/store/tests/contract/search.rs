//! Records found by the beginnings of words.

use crate::authorization::consent;
use crate::browser_sessions::session;
use crate::prelude::*;

/// How many principals and tokens a search finds.
async fn found(store: &Store, org: OrgId, asked: &str) -> (usize, usize) {
    let page = PrincipalQuery { q: Some(asked.to_owned()), limit: 10, ..PrincipalQuery::default() };
    let query = TokenQuery { q: page.q.clone(), now: NOW, limit: 10, ..TokenQuery::default() };
    let principals = store.page_principals(org, &page).await.unwrap();
    (principals.len(), store.page_tokens(org, &query).await.unwrap().tokens.len())
}

/// How many sessions, consents and tokens of a principal, or of all, a search finds.
async fn found_of(
    store: &Store,
    org: OrgId,
    principal: Option<PrincipalId>,
    asked: &str,
) -> [usize; 3] {
    let (q, now, limit) = (Some(asked.to_owned()), NOW, 10);
    let sessions = SessionQuery { principal, q: q.clone(), limit, now, ..Default::default() };
    let consents = ConsentQuery { principal, q: q.clone(), limit, ..Default::default() };
    let tokens = TokenQuery { principal, q, limit, now, ..TokenQuery::default() };
    [
        store.list_sessions(org, &sessions).await.unwrap().len(),
        store.list_consents(org, &consents).await.unwrap().len(),
        store.page_tokens(org, &tokens).await.unwrap().tokens.len(),
    ]
}

on_both! {
    async fn a_search_reads_a_thousand_words_and_of_one_principal_only_its_own(db: Database) {
        let org = org(&db, 1).await;
        let pia = Principal { name: "Pia".to_owned(), ..principal(org, 1) };
        db.create_principal(&pia).await.unwrap();
        let ben = user(&db, org, 2).await;
        for (n, who) in [(1, pia.id), (2, ben)] {
            let secret = [u8::try_from(n).unwrap(); 32];
            db.open_session(&session(org, who, n), &secret, &[]).await.unwrap();
            db.keep_consent(&consent(org, who, n)).await.unwrap();
            let labelled = TokenRecord { label: Some(format!("Zoo {n}")), ..token(org, who, n) };
            db.insert_token(&labelled, &hash(n)).await.unwrap();
        }
        for (asked, of_pia, of_ben, of_all) in [
            ("p", [1, 1, 1], [1, 1, 1], [2, 2, 2]),
            ("pi", [1, 1, 1], [0, 0, 0], [1, 1, 1]),
            ("zoo 2", [0, 0, 0], [0, 0, 1], [0, 0, 1]),
        ] {
            assert_eq!(found_of(&db, org, Some(pia.id), asked).await, of_pia, "{asked}");
            assert_eq!(found_of(&db, org, Some(ben), asked).await, of_ben, "{asked}");
            assert_eq!(found_of(&db, org, None, asked).await, of_all, "{asked}");
        }

        db.execute_text(format!(
            "INSERT INTO search_words (org_id, source, word, id) WITH RECURSIVE numbers (n) AS \
             (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000) \
             SELECT '{org}', 'name', 'p0' || n, 'x' || n FROM numbers"
        ))
        .await;

        assert_eq!(found(&db, org, "p").await, (0, 0), "they are behind the first thousand");
        assert_eq!(found(&db, org, "pi").await, (1, 1));
        assert_eq!(found_of(&db, org, Some(pia.id), "p").await, [1, 1, 1]);
    }

    async fn records_are_found_also_those_of_an_earlier_release_and_not_those_that_are_gone(db: Database) {
        let [org, other] = orgs(&db).await;
        let ana = Principal { name: "Ana da SILVA".to_owned(), ..principal(org, 1) };
        db.create_principal(&ana).await.unwrap();
        let ben = user(&db, org, 2).await;
        let labelled =
            TokenRecord { label: Some("Nightly build".to_owned()), ..token(org, ben, 1) };
        db.insert_token(&labelled, &hash(1)).await.unwrap();
        db.insert_token(&token(org, ana.id, 2), &hash(2)).await.unwrap();
        let cases = [
            ("ana", (1, 1)), ("DA  sil", (1, 1)), ("silva", (1, 1)), ("ilva", (0, 0)), ("build", (0, 1)),
            ("person 2", (1, 1)), ("%", (0, 0)), ("a_a", (0, 0)),
        ];

        for (asked, wanted) in cases {
            assert_eq!(found(&db, org, asked).await, wanted, "{asked}");
            assert_eq!(found(&db, other, asked).await, (0, 0), "{asked}");
        }

        db.forget_tokens(NOW.plus_seconds(1_000_000_000)).await.unwrap();
        assert_eq!(db.find_token(org, token_id(1)).await.unwrap(), None);
        assert_eq!(found(&db, org, "build").await, (0, 0));
    }
}
