//! Since when each version of a tool is known.

use crate::prelude::*;

const MOST: u32 = 3;

on_both! {
    async fn a_version_is_as_old_as_its_first_sight(db: Database) {
        let org = org(&db, 1).await;
        let tool: CapabilityId = "sample:list_items".parse().unwrap();
        let old = (tool.clone(), "sha256:a".to_owned());
        let new = (tool, "sha256:b".to_owned());
        let shared = old.clone();
        let later = NOW.plus_seconds(60);

        let first = db.tool_seen(Some(org), std::slice::from_ref(&old), MOST, NOW).await.unwrap();
        let second = db.tool_seen(Some(org), &[new.clone(), old.clone()], MOST, later).await.unwrap();
        let third = db.tool_seen(Some(org), &[old, new], MOST, later.plus_seconds(60)).await.unwrap();

        assert_eq!(first, [NOW]);
        assert_eq!(second, [later, NOW]);
        assert_eq!(third, [NOW, later]);
        let shared = db.tool_seen(None, std::slice::from_ref(&shared), MOST, later).await.unwrap();
        assert_eq!(shared, [later], "a provider of all orgs is another than that of one");
    }

    async fn versions_that_are_not_listed_any_more_are_forgotten_beyond_a_number(db: Database) {
        let version = |n: i64| ("prompt:sample:letter".parse::<CapabilityId>().unwrap(), format!("v{n}"));
        let first = version(0);
        let other = ("sample-2:a".parse().unwrap(), "x".to_owned());
        db.tool_seen(None, std::slice::from_ref(&other), MOST, NOW).await.unwrap();
        for n in 1..=10 {
            let listed = [first.clone(), version(n)];
            db.tool_seen(None, &listed, MOST, NOW.plus_seconds(n)).await.unwrap();
        }

        let later = NOW.plus_seconds(100);
        let all: Vec<_> = (0..=10).map(version).collect();
        let seen = db.tool_seen(None, &all, MOST, later).await.unwrap();

        let old = (0_i64..).zip(&seen).filter(|(_, at)| **at < later);
        let known: Vec<i64> = old.map(|(n, _)| n).collect();
        assert_eq!(known, [0, 7, 8, 9, 10], "those listed last, and three besides");
        assert_eq!(db.tool_seen(None, &[other], MOST, later).await.unwrap(), [NOW]);
    }
}
