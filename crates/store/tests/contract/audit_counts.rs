//! Counts of calls by minute: each event once, summed by steps, thinned with age.

use crate::prelude::*;

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60;
const TOOL: &str = "p:t";

/// A call that took so many microseconds, decided, scanned and ended so.
pub(crate) fn call(
    org: OrgId,
    n: u32,
    took: i64,
    [decision, dlp, outcome]: [&'static str; 3],
) -> NewEvent {
    let plain = event(org, n);
    NewEvent {
        occurred_at: Timestamp::from_micros(NOW.as_micros() - took),
        decision: Some(decision.into()).filter(|_| !decision.is_empty()),
        dlp_result: Some(dlp.into()),
        outcome: Some(outcome.into()),
        texts: plain.texts.clone().with(TextColumn::Target, TOOL),
        ..plain
    }
}

fn now() -> i64 {
    NOW.as_seconds() / MINUTE
}

on_both! {
    async fn each_sealed_call_is_counted_once_in_its_minute_and_org(db: Database) {
        let [org, other] = orgs(&db).await;
        let calls = vec![
            call(org, 1, 900, ["allow", "passed", "success"]),
            call(org, 2, 1_000, ["allow", "redacted", "success"]),
            call(org, 3, 40_000, ["allow", "flagged", "tool_error"]),
            call(org, 4, 99_000_000, ["allow", "skipped", "unknown"]),
            call(org, 5, 20_000_000, ["allow", "passed", "upstream_timeout"]),
            call(org, 6, 300, ["deny", "blocked", "denied"]),
            call(org, 7, 300, ["deny", "passed", "approval_pending"]),
            call(org, 8, 300, ["", "skipped", "not_found"]),
            NewEvent { kind: "token.issued".into(), ..event(org, 9) },
            call(other, 10, 300, ["deny", "passed", "denied"]),
        ];
        append_all(&db, calls).await;
        let range = CountsRange { from: now() - 5, to: now() + 1, step: 1 };
        assert!(db.call_counts(org, range).await.unwrap().is_empty(), "nothing is sealed");

        for _ in 0..2 {
            db.seal(org, leaf).await.unwrap();
            db.seal(other, leaf).await.unwrap();
        }

        let mut latencies = [0; 13];
        for (class, number) in [(0, 2), (5, 1), (12, 1)] {
            latencies[class] = number;
        }
        let counts = CallCounts {
            allowed: 5, denied: 1, asked: 1, undecided: 1,
            flagged: 1, redacted: 1, blocked: 1, failed: 3, latencies,
        };
        let steps = db.call_counts(org, range).await.unwrap();
        assert_eq!(steps, [StepCounts { minute: now(), counts }]);
        let denied = CallCounts { denied: 1, ..CallCounts::default() };
        let steps = db.call_counts(other, range).await.unwrap();
        assert_eq!(steps, [StepCounts { minute: now(), counts: denied }]);
        let hour = now() / 60;
        let tools = [TOOL.to_owned(), "p:none".to_owned()];
        for (org, calls) in [(org, 7), (other, 1)] {
            let counted = db.tool_calls(org, &tools, hour).await.unwrap();
            let expected = ToolCalls { tool: TOOL.to_owned(), hour, calls };
            assert_eq!(counted, [expected], "those that a policy decided");
            assert!(db.tool_calls(org, &tools, hour + 1).await.unwrap().is_empty());
        }
        let later = Timestamp::from_micros((now() + (TOOL_HOURS + 1) * 60) * 60_000_000);
        db.thin_counts(&[org], later, Timestamp::from_micros(0)).await.unwrap();
        assert!(db.tool_calls(org, &tools, 0).await.unwrap().is_empty());
        assert_eq!(db.tool_calls(other, &tools, 0).await.unwrap().len(), 1);
    }

    async fn old_counts_are_merged_into_coarser_steps_and_forgotten_in_the_end(db: Database) {
        let org = org(&db, 1).await;
        let today = now() / DAY * DAY;
        for (age, kinds) in [(9, 2), (0, 2)] {
            for (minute, number) in [(61, 1), (62, 2), (130, 3)] {
                let minute = today - age * DAY + minute;
                db.execute_text(format!(
                    "INSERT INTO audit_counts (org_id, minute, kind, number) \
                     VALUES ('{org}', {minute}, {kinds}, {number})"
                )).await;
            }
        }
        let minutes = async |age: i64| {
            let from = today - age * DAY;
            let range = CountsRange { from, to: from + DAY, step: 1 };
            let steps = db.call_counts(org, range).await.unwrap();
            steps.iter().map(|it| (it.minute - from, it.counts.denied)).collect::<Vec<_>>()
        };
        let unchanged = [(61, 1), (62, 2), (130, 3)];
        let mut seen = Vec::new();

        // After no days twice, and after days by which the first are old enough for days.
        for (days, forgotten) in [(0, -400), (0, -400), (33, -400), (33, 1)] {
            let at = |days: i64| NOW.plus_seconds(days * DAY * MINUTE);
            db.thin_counts(&[org], at(days), at(forgotten)).await.unwrap();
            seen.push((minutes(9).await, minutes(0).await));
        }

        let hours = vec![(60, 3), (120, 3)];
        let expected = [
            (hours.clone(), unchanged.to_vec()),
            (hours, unchanged.to_vec()),
            (vec![(0, 6)], unchanged.to_vec()),
            (vec![], vec![]),
        ];
        assert_eq!(seen, expected);
        let by_hour = CountsRange { from: today, to: today + DAY, step: 60 };
        assert!(db.call_counts(org, by_hour).await.unwrap().is_empty());
    }
}
