//! Shared counters: exact over any number of connections, on the server's clock. They run against
//! the server that `PORTCULLIS_TEST_REDIS` names, in orgs of their own.

use std::num::NonZeroU32;

use aws_lc_rs::rand;
use tokio::net::TcpListener;

use crate::prelude::*;

#[derive(Debug)]
struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).unwrap();
    }
}

/// Time for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

struct Counters {
    shared: SharedCounters,
    _task: JoinSet<()>,
}

/// A connection of its own, as that of another node; `None` when there is meant to be no server.
async fn counters() -> Option<Counters> {
    let Ok(url) = std::env::var("PORTCULLIS_TEST_REDIS") else {
        assert!(
            std::env::var("PORTCULLIS_TEST_SQLITE_ONLY").is_ok_and(|only| only == "1"),
            "set PORTCULLIS_TEST_REDIS=redis://… (`./test` does), or PORTCULLIS_TEST_SQLITE_ONLY=1"
        );
        return None;
    };
    let counters = at(&url, PATIENCE);
    counters.shared.reachable().await;
    Some(counters)
}

fn at(url: &str, patience: Duration) -> Counters {
    let url: CountersUrl = url.parse().unwrap();
    let (shared, task) = SharedCounters::new(&url, patience).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run(|_| {}));
    Counters { shared, _task: tasks }
}

fn nobody() -> OrgId {
    OrgId::new(Ids { clock: &SetClock::default(), random: &SystemRandom })
}

/// An org whose window lasts for half of it yet by the clock of the server.
async fn org(counters: &SharedCounters) -> OrgId {
    loop {
        let org = nobody();
        let told = counters.charge(&charge(org, Cost::Request, 1, 1)).await.unwrap();
        if told.counted.window.seconds_left(told.now) > 30 {
            // That one is not to count: another org with the same offset is as good.
            let twin = (0..).map(|_| nobody());
            let mut twins = twin.filter(|twin| window_offset(*twin) == window_offset(org));
            return twins.next().unwrap();
        }
    }
}

fn charge(org: OrgId, cost: Cost, requests: u32, invocations: u32) -> Charge {
    let window = Window { number: 0, ends_at: 0 };
    let seen = WindowCounts { window, requests: 0, invocations: 0 };
    Charge { org, offset: window_offset(org), cost, requests, invocations, seen }
}

fn used(charged: &ChargeOutcome) -> (Option<Resource>, u32, u32) {
    (charged.exhausted, charged.counted.requests, charged.counted.invocations)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_on_many_nodes_just_as_many_pass_as_are_allowed() {
    let Some(first) = counters().await else { return };
    let others = [counters().await.unwrap(), counters().await.unwrap()];
    let nodes = [&first, &others[0], &others[1]].map(|node| node.shared.clone());
    let org = org(&first.shared).await;
    let mut asking = JoinSet::new();

    for n in 0..300 {
        let node = nodes[n % nodes.len()].clone();
        asking.spawn(async move { node.charge(&charge(org, Cost::Call, 100, 40)).await });
    }
    let mut verdicts = [0; 3];
    while let Some(charged) = asking.join_next().await {
        match charged.unwrap() {
            Ok(ChargeOutcome { exhausted: None, .. }) => verdicts[0] += 1,
            Ok(ChargeOutcome { exhausted: Some(Resource::Invocations), .. }) => verdicts[1] += 1,
            Ok(ChargeOutcome { exhausted: Some(_), .. }) => verdicts[2] += 1,
            Err(error) => panic!("{error}"),
        }
    }

    let after = first.shared.charge(&charge(org, Cost::Call, 1000, 40)).await.unwrap();
    assert_eq!(verdicts[0], 40, "{verdicts:?}");
    assert_eq!(verdicts[0] + verdicts[1], 100, "{verdicts:?}");
    assert_eq!(used(&after), (Some(Resource::Invocations), 101, 40));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_costs_nothing_and_windows_are_those_of_the_contract() {
    let Some(counters) = counters().await else { return };
    let org = org(&counters.shared).await;
    let ask = async |cost, requests, invocations| {
        counters.shared.charge(&charge(org, cost, requests, invocations)).await.unwrap()
    };

    let first = ask(Cost::Request, 2, 1).await;
    let second = ask(Cost::Call, 2, 1).await;
    let refused = ask(Cost::Call, 2, 1).await;
    let raised = ask(Cost::Call, 3, 1).await;

    assert_eq!(used(&first), (None, 1, 0));
    assert_eq!(used(&second), (None, 2, 1));
    assert_eq!(used(&refused), (Some(Resource::Requests), 2, 1));
    assert_eq!(used(&raised), (Some(Resource::Invocations), 3, 1), "it was a request");
    for charged in [first, second, refused, raised] {
        assert_eq!(charged.counted.window, Window::at(charged.now, window_offset(org)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_goes_on_from_what_a_node_was_told() {
    let Some(counters) = counters().await else { return };
    let org = org(&counters.shared).await;
    let told = counters.shared.charge(&charge(org, Cost::Call, 100, 100)).await.unwrap();
    let seen = WindowCounts { requests: 60, invocations: 30, ..told.counted };

    let known = Charge { seen, ..charge(org, Cost::Call, 100, 100) };
    let next = counters.shared.charge(&known).await.unwrap();
    let old = WindowCounts { window: Window { number: 1, ends_at: 120 }, ..seen };
    let known = Charge { seen: old, ..charge(org, Cost::Call, 100, 100) };
    let after = counters.shared.charge(&known).await.unwrap();

    assert_eq!(used(&next), (None, 61, 31));
    assert_eq!(used(&after), (None, 62, 32));
}

fn rate(count: u32, period_s: u32) -> Rate {
    let [count, period_s] = [count, period_s].map(|n| NonZeroU32::new(n).unwrap());
    Rate { count, period_s, per: Per::Org }
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_are_taken_from_all_at_once_or_from_none() {
    let Some(counters) = counters().await else { return };
    let org = nobody();
    let wide = ("wide".to_owned(), rate(3, 3600));
    let narrow = ("narrow".to_owned(), rate(1, 3600));
    let take = async |rates: &[(String, Rate)]| counters.shared.take(org, rates).await.unwrap();

    assert_eq!(take(&[wide.clone(), narrow.clone()]).await, Ok(()));
    let (place, Full { retry_after_s }) = take(&[wide.clone(), narrow.clone()]).await.unwrap_err();
    assert_eq!(take(std::slice::from_ref(&wide)).await, Ok(()));
    assert_eq!(take(std::slice::from_ref(&wide)).await, Ok(()), "the second took nothing");
    assert_eq!(take(std::slice::from_ref(&wide)).await.unwrap_err().0, 0);
    counters.shared.give_back(org, std::slice::from_ref(&wide)).await.unwrap();

    assert_eq!(place, 1);
    assert!((3598..=3600).contains(&retry_after_s), "{retry_after_s}");
    assert_eq!(take(std::slice::from_ref(&wide)).await, Ok(()));
    let other = nobody();
    assert_eq!(counters.shared.take(other, &[narrow]).await.unwrap(), Ok(()), "another org's");
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_of_many_nodes_never_pass_one_too_many() {
    let Some(counters) = counters().await else { return };
    let org = nobody();
    let passed = at_once(0..100, |_| {
        let shared = counters.shared.clone();
        async move { shared.take(org, &[("k".to_owned(), rate(30, 3600))]).await }
    })
    .await
    .into_iter()
    .filter(|it| *it == Ok(Ok(())))
    .count();

    assert_eq!(passed, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_silent_or_not_there_is_not_waited_for() {
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = silent.local_addr().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();

    for address in [there, gone] {
        let counters = at(&format!("redis://{address}"), Duration::from_millis(200));
        let charge = charge(nobody(), Cost::Request, 1, 1);
        let refused = timeout(PATIENCE, counters.shared.charge(&charge)).await;

        assert!(refused.expect("an answer, although the server gives none").is_err());
    }
}
