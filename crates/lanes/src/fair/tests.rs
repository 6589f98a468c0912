//! Slots shared between parties that wait for them.

use std::iter;

use futures_util::{FutureExt, future::join_all};
use tokio::{task::yield_now, time::sleep};

use super::*;

const PATIENCE: Duration = Duration::from_millis(40);
const FLOOD: char = 'F';
const OTHER: char = 'O';

fn slots(slots: usize, reserve: usize, waiting: usize) -> Arc<FairSlots<char>> {
    Arc::new(FairSlots::new(FairLimits { slots, reserve, waiting, patience: PATIENCE }))
}

async fn take_slots(
    slots: &Arc<FairSlots<char>>,
    party: char,
    count: usize,
) -> Vec<FairSlot<char>> {
    let all = join_all(iter::repeat_with(|| slots.take(party)).take(count)).await;
    all.into_iter().flatten().collect()
}

/// Notes whose turn it was.
async fn noted(slots: Arc<FairSlots<char>>, party: char, served: Arc<Mutex<String>>) {
    let slot = slots.take(party).await;
    if slot.is_some() {
        served.lock().unwrap().push(party);
    }
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_is_alone_may_have_all_and_waits_no_longer_than_is_said() {
    let slots = slots(4, 1, 4);
    let start = Instant::now();

    let held = take_slots(&slots, FLOOD, 5).await;

    assert_eq!((held.len(), start.elapsed()), (4, PATIENCE));
    drop(held);
    assert_eq!(take_slots(&slots, OTHER, 4).await.len(), 3, "one is left for the party before");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_behind_more_than_one_of_each_other_party() {
    let slots = slots(1, 0, 20);
    let held = slots.take(FLOOD).await.unwrap();
    let served = Arc::new(Mutex::new(String::new()));

    let asked = [FLOOD, FLOOD, FLOOD, FLOOD, FLOOD, OTHER, OTHER, 'x'];
    let all = asked.map(|party| noted(slots.clone(), party, served.clone()));
    tokio::join!(join_all(all), async {
        yield_now().await;
        drop(held);
    });

    assert_eq!(*served.lock().unwrap(), "FOxFOFFF");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_the_matter_of_whoever_fills_it() {
    let slots = slots(1, 0, 4);
    let held = slots.take(FLOOD).await.unwrap();
    let mut flood: Vec<_> = (0..5).map(|_| Box::pin(slots.take(FLOOD))).collect();
    let refused = flood.iter_mut().filter_map(FutureExt::now_or_never).count();
    assert_eq!(refused, 1, "four may wait");

    let mut other = Box::pin(slots.take(OTHER));

    assert!(other.as_mut().now_or_never().is_none(), "there is room for another party");
    assert!(matches!(flood[3].as_mut().now_or_never(), Some(None)), "the last one's");
    drop(held);
    assert!(matches!(flood[0].as_mut().now_or_never(), Some(Some(_))));
    assert!(matches!(other.as_mut().now_or_never(), Some(Some(_))));
}

#[tokio::test(start_paused = true)]
async fn slots_that_are_held_for_long_leave_some_to_others_who_asked_lately() {
    let slots = slots(8, 1, 8);
    let flood = take_slots(&slots, FLOOD, 8).await;
    assert!(slots.take(OTHER).await.is_none(), "nobody knew of it");

    drop(flood);
    let flood = take_slots(&slots, FLOOD, 9).await;

    assert_eq!(flood.len(), 7);
    assert!(matches!(slots.take(OTHER).now_or_never(), Some(Some(_))));
    tokio::time::advance(LATELY).await;
    assert_eq!(take_slots(&slots, FLOOD, 1).await.len(), 1, "the other one has not come again");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_those_who_have_gone() {
    let slots = slots(2, 0, 4);
    for party in ('a'..='z').chain('A'..='Z') {
        let held = take_slots(&slots, party, 2).await;
        assert!(slots.take(party).await.is_none(), "in time");
        let given_up = Box::pin(slots.take(party)).as_mut().now_or_never();
        assert!(given_up.is_none());
        let mut granted = Box::pin(slots.take(party));
        assert!(granted.as_mut().now_or_never().is_none());
        drop(held);
        // Given, and never noticed.
        drop(granted);
    }

    let state = slots.lock();
    assert_eq!((state.free, state.waiting, state.shares.len(), state.turns.len()), (2, 0, 0, 0));
}
