//! Policy sets and versions stay readable.

use crate::prelude::*;

fn policy(id: &str, version: &str) -> PolicyVersion {
    let record = format!("{{\"id\":\"{id}\",\"version\":\"{version}\"}}");
    PolicyVersion { id: id.to_owned(), version: version.to_owned(), record }
}

fn set<'a>(version: &'a str, members: &[(&'a str, &'a str)]) -> NewPolicySet<'a> {
    NewPolicySet { version, members: members.to_vec(), files: "{}".to_owned() }
}

on_both! {
    async fn a_policy_set_and_its_policies_are_found_by_version(db: Database) {
        let a1 = policy("a", "sha256:1");
        let a2 = policy("a", "sha256:2");
        let b = policy("b", "sha256:3");

        let first = set("sha256:x", &[("a", "sha256:1"), ("b", "sha256:3")]);
        db.keep_policy_set(&first, &[a1.clone(), b.clone()], NOW).await.unwrap();
        let second = set("sha256:y", &[("a", "sha256:2"), ("b", "sha256:3")]);
        db.keep_policy_set(&second, std::slice::from_ref(&a2), NOW).await.unwrap();

        let found = db.find_policy_set("sha256:x").await.unwrap().unwrap();
        assert_eq!(found.records, [a1.record.clone(), b.record.clone()]);
        let found = db.find_policy_set("sha256:y").await.unwrap().unwrap();
        assert_eq!((found.records, found.files.as_str()), (vec![a2.record, b.record], "{}"));
        let one = db.find_policy_version("a", "sha256:1").await.unwrap();
        assert_eq!(one, Some(a1.record));
        assert_eq!(db.find_policy_version("b", "sha256:1").await.unwrap(), None);
        assert_eq!(db.find_policy_set("sha256:z").await.unwrap(), None);
    }

    async fn the_last_set_is_the_one_that_came_into_force_last(db: Database) {
        assert_eq!(db.last_policy_set().await.unwrap(), None);
        let x = set("sha256:x", &[("a", "sha256:1")]);
        let y = set("sha256:y", &[]);

        let mut last = Vec::new();
        for (second, set) in [(0, &x), (1, &y), (2, &x)] {
            db.keep_policy_set(set, &[], NOW.plus_seconds(second)).await.unwrap();
            last.push(db.last_policy_set().await.unwrap().unwrap());
        }

        let versions: Vec<&str> = last.iter().map(|set| set.version.as_str()).collect();
        assert_eq!(versions, ["sha256:x", "sha256:y", "sha256:x"]);
        assert_eq!(last[0].members, [("a".to_owned(), "sha256:1".to_owned())]);
        assert_eq!(last[1].members, []);
    }

    async fn keeping_a_set_twice_changes_nothing(db: Database) {
        let kept = policy("a", "sha256:1");
        let members = set("sha256:x", &[("a", "sha256:1")]);

        for record in [kept.record.as_str(), "{}"] {
            let policy = PolicyVersion { record: record.to_owned(), ..kept.clone() };
            db.keep_policy_set(&members, &[policy], NOW).await.unwrap();
        }

        let found = db.find_policy_set("sha256:x").await.unwrap().unwrap();
        assert_eq!(found.records, [kept.record]);
    }
}
