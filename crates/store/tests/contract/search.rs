//! Records found by the beginnings of words.

use portcullis_core::id::OrgId;
use portcullis_store::{Principal, PrincipalPage, Store, TokenQuery, TokenRecord};

use crate::{
    database::{Database, on_both},
    given::{self, NOW, hash, token, token_id},
};

/// How many principals and tokens a search finds.
async fn found(store: &Store, org: OrgId, asked: &str) -> (usize, usize) {
    let page =
        PrincipalPage { search: Some(asked.to_owned()), limit: 10, ..PrincipalPage::default() };
    let query = TokenQuery {
        search: Some(asked),
        principal_id: None,
        kind: None,
        state: None,
        now: NOW,
        after: None,
        limit: 10,
    };
    let principals = store.page_principals(org, &page).await.unwrap();
    (principals.len(), store.page_tokens(org, &query).await.unwrap().tokens.len())
}

on_both! {
    async fn records_are_found_also_those_of_an_earlier_release_and_not_those_that_are_gone(db: Database) {
        let [org, other] = [given::org(&db.store, 1).await, given::org(&db.store, 2).await];
        let ana = Principal { name: "Ana da SILVA".to_owned(), ..given::principal(org, 1) };
        db.store.create_principal(&ana).await.unwrap();
        let ben = given::user(&db.store, org, 2).await;
        let labelled =
            TokenRecord { label: Some("Nightly build".to_owned()), ..token(org, ben, 1) };
        db.store.insert_token(&labelled, &hash(1)).await.unwrap();
        db.store.insert_token(&token(org, ana.id, 2), &hash(2)).await.unwrap();
        let cases = [
            ("ana", (1, 1)), ("DA  sil", (1, 1)), ("silva", (1, 1)), ("ilva", (0, 0)), ("build", (0, 1)),
            ("person 2", (1, 1)), ("%", (0, 0)), ("a_a", (0, 0)),
        ];

        for (asked, wanted) in cases {
            assert_eq!(found(&db.store, org, asked).await, wanted, "{asked}");
            assert_eq!(found(&db.store, other, asked).await, (0, 0), "{asked}");
        }
        db.execute("DROP TABLE search_words").await;
        db.execute("DELETE FROM schema_migrations WHERE version = 50").await;
        let store = Store::open(&db.settings).await.unwrap();
        for (asked, wanted) in cases {
            assert_eq!(found(&store, org, asked).await, wanted, "{asked}");
        }

        store.forget_tokens(NOW.plus_seconds(1_000_000_000)).await.unwrap();
        assert_eq!(store.find_token(org, token_id(1)).await.unwrap(), None);
        assert_eq!(found(&store, org, "build").await, (0, 0));
    }
}
