//! Usage of plans by day.

use crate::prelude::*;

const DAY: i64 = 24 * 60 * 60;

on_both! {
    async fn usage_is_added_by_day_and_org_and_forgotten_in_the_end(db: Database) {
        let [one, two] = orgs(&db).await;
        let gone = id("org", 9);
        let used = |requests, invocations| Usage { requests, invocations };
        let of = async |org, days: i64| {
            db.usage_since(org, NOW.plus_seconds(days * DAY)).await.unwrap()
        };

        let first = [(one, used(5, 1)), (gone, used(7, 7)), (two, used(2, 0))];
        db.add_usage(&first, NOW.plus_seconds(-DAY)).await.unwrap();
        db.add_usage(&[(one, used(10, 2))], NOW).await.unwrap();
        db.add_usage(&[(one, used(1, 1))], NOW).await.unwrap();

        assert_eq!(of(one, 0).await, used(11, 3));
        assert_eq!(of(one, -1).await, used(16, 4));
        assert_eq!((of(two, 0).await, of(two, -9).await), (used(0, 0), used(2, 0)));
        assert_eq!(of(gone, -9).await, used(0, 0));

        db.forget_usage(NOW.plus_seconds(400 * DAY)).await.unwrap();

        assert_eq!(of(one, -9).await, used(11, 3), "yesterday is forgotten, today is not");
    }
}
