//! Circuits of one org, of several that agree, and their bounds.

use std::time::Duration;

use portcullis_core::refusal::Executed;

use super::{
    health::{FIRST_REST, LONGEST_REST, MAX_ORGS, THRESHOLD},
    *,
};

#[tokio::test(start_paused = true)]
async fn lateness_says_nothing_where_answers_wait_for_each_other() {
    let breaker = Breaker::default();
    let tool = name("slow");
    let late = || Err(CallError::timeout(Duration::from_secs(2), Executed::Unknown));

    for crowded in [true, false] {
        for _ in 0..THRESHOLD {
            let admission = breaker.admit(org(1), &tool, Instant::now()).unwrap().crowded(crowded);
            let _: Result<(), _> = admission.ended(late());
        }
        assert_eq!(breaker.open() > 0, !crowded);
    }
}

const UNREACHABLE: CallError = CallError::connect_failed();
const USELESS: CallError = CallError::protocol(Executed::Unknown);

fn name(text: &str) -> CapabilityId {
    format!("up:{text}").parse().unwrap()
}

fn org(number: u8) -> OrgId {
    format!("org_01M754BKTKX1YB8Q05NMW9T{number:03}").parse().unwrap()
}

/// One call of the tool that ends so; gives the refusal of the breaker, if there was one.
fn call(breaker: &Breaker, tool: &str, end: Result<(), CallError>) -> Option<Duration> {
    call_of(1, breaker, tool, end)
}

/// The same for one of several orgs.
fn call_of(
    number: u8,
    breaker: &Breaker,
    tool: &str,
    end: Result<(), CallError>,
) -> Option<Duration> {
    let tool = name(tool);
    match breaker.admit(org(number), &tool, Instant::now()) {
        Ok(admission) => {
            let _ = admission.ended(end);
            None
        }
        Err(CallError { kind: CallErrorKind::Resting { rest }, executed: Executed::No }) => {
            Some(rest)
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// The tool `a` fails for an org as often as makes it rest.
fn fail(number: u8, breaker: &Breaker, end: CallError) {
    for _ in 0..THRESHOLD {
        assert_eq!(call_of(number, breaker, "a", Err(end)), None);
    }
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_open_it_and_one_probe_after_each_rest_decides() {
    let breaker = Breaker::default();
    for _ in 0..4 {
        assert_eq!(call(&breaker, "a", Err(UNREACHABLE)), None);
    }
    assert_eq!(call(&breaker, "a", Ok(())), None, "a success forgets them");
    fail(1, &breaker, UNREACHABLE);

    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        let rest = Duration::from_secs(seconds);
        assert_eq!(call(&breaker, "b", Ok(())), Some(rest), "every tool rests");
        assert!(breaker.is_way_open());
        tokio::time::advance(rest).await;
        let tool = name("a");
        let probe = breaker.admit(org(1), &tool, Instant::now()).unwrap();
        assert_eq!(call(&breaker, "a", Ok(())), Some(FIRST_REST), "one at a time");
        probe.ended::<()>(Err(UNREACHABLE)).unwrap_err();
    }

    tokio::time::advance(LONGEST_REST).await;
    assert_eq!(call(&breaker, "a", Ok(())), None);
    assert_eq!(call(&breaker, "b", Ok(())), None);
    assert_eq!((breaker.open(), breaker.is_way_open()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn many_calls_that_fail_together_are_not_many_failures() {
    for (end, rest) in [(UNREACHABLE, FIRST_REST), (USELESS, FIRST_REST)] {
        let breaker = Breaker::default();
        let tool = name("a");
        let all: Vec<_> =
            (0..100).map(|_| breaker.admit(org(1), &tool, Instant::now()).unwrap()).collect();

        for admission in all {
            admission.ended::<()>(Err(end)).unwrap_err();
        }

        assert_eq!(call(&breaker, "a", Ok(())), Some(rest));
        tokio::time::advance(rest).await;
        assert_eq!(call(&breaker, "a", Ok(())), None, "the first probe decides");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_answers_rests_alone() {
    let breaker = Breaker::default();
    fail(1, &breaker, USELESS);

    assert!(call(&breaker, "a", Ok(())).is_some());
    assert_eq!(call(&breaker, "b", Ok(())), None);
    assert_eq!((breaker.open(), breaker.is_way_open()), (1, false));
    assert!(call(&breaker, "a", Ok(())).is_some(), "another tool's answer says nothing of it");
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_refusals_are_answers() {
    let breaker = Breaker::default();
    for error in [
        CallError::upstream(UpstreamReason::JsonrpcError, Executed::No),
        CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown),
        CallError::too_large(Executed::Yes),
        CallError::auth_required(),
        CallError::overloaded(),
    ] {
        for _ in 0..10 {
            assert_eq!(call(&breaker, "a", Err(error)), None);
        }
    }
    assert_eq!(breaker.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_given_up_leaves_room_for_the_next() {
    let breaker = Breaker::default();
    fail(1, &breaker, UNREACHABLE);
    tokio::time::advance(FIRST_REST).await;
    let tool = name("a");

    drop(breaker.admit(org(1), &tool, Instant::now()).unwrap());

    assert_eq!(call(&breaker, "a", Err(CallError::overloaded())), None);
    assert_eq!(call(&breaker, "a", Ok(())), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_rests_is_tried_again_also_after_there_was_no_way_to_it() {
    let breaker = Breaker::default();
    fail(1, &breaker, USELESS);
    tokio::time::advance(FIRST_REST).await;

    assert_eq!(call(&breaker, "a", Err(UNREACHABLE)), None, "the probe");

    assert_eq!(call(&breaker, "a", Ok(())), None);
    assert_eq!(breaker.open(), 0);
}

// Whatever happens, and in whatever order: when nothing is under way and the longest rest is over,
// a call is let through.
#[tokio::test(start_paused = true)]
async fn nobody_is_locked_out_for_ever() {
    let tools = [name("a"), name("b")];
    let mut dice = 7_u32;
    let mut roll = |sides: u32| {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (dice >> 16) % sides
    };
    for _ in 0..200 {
        let breaker = Breaker::default();
        let mut under_way = Vec::new();
        for _ in 0..60 {
            let tool = &tools[roll(2) as usize];
            under_way.extend(breaker.admit(org(1), tool, Instant::now()));
            if roll(3) > 0 && !under_way.is_empty() {
                let at = roll(u32::try_from(under_way.len()).unwrap()) as usize;
                let admission = under_way.swap_remove(at);
                let _ = match roll(6) {
                    0 => {
                        drop(admission);
                        Ok(())
                    }
                    1 => admission.ended(Ok(())),
                    2 => admission.ended(Err(CallError::overloaded())),
                    3 => admission.ended(Err(USELESS)),
                    _ => admission.ended(Err(UNREACHABLE)),
                };
            }
            tokio::time::advance(Duration::from_millis(u64::from(roll(4_000)))).await;
        }
        drop(under_way);
        tokio::time::advance(LONGEST_REST).await;

        for tool in &tools {
            let admission = breaker.admit(org(1), tool, Instant::now());
            assert!(admission.is_ok(), "{tool} rests for ever: {breaker:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_another_question_closes_the_way() {
    let breaker = Breaker::default();
    fail(1, &breaker, UNREACHABLE);

    breaker.reached();

    assert_eq!(call(&breaker, "a", Ok(())), None);
}

#[tokio::test(start_paused = true)]
async fn an_org_that_makes_a_tool_fail_stops_its_own_calls_only() {
    for end in [USELESS, UNREACHABLE] {
        let breaker = Breaker::default();
        let mut refused = 0;

        for _ in 0..29 {
            refused += usize::from(call_of(1, &breaker, "a", Err(end)).is_some());
            assert_eq!(call_of(2, &breaker, "b", Err(CallError::overloaded())), None);
            assert_eq!(breaker.check(org(2), &name("a"), Instant::now()), Ok(()));
        }

        assert_eq!(refused, 29 - THRESHOLD as usize, "it is protected from itself");
        assert_eq!(call_of(2, &breaker, "a", Ok(())), None);
    }
}

#[tokio::test(start_paused = true)]
async fn orgs_that_agree_speak_for_all_until_one_of_them_finds_out_more() {
    let breaker = Breaker::default();
    for number in [1, 2] {
        fail(number, &breaker, USELESS);
    }

    // Nothing has failed for it, and it does not have to find out five times.
    assert_eq!(call_of(3, &breaker, "a", Ok(())), Some(FIRST_REST));
    assert_eq!(call_of(3, &breaker, "b", Ok(())), None, "another tool");
    tokio::time::advance(FIRST_REST).await;
    assert_eq!(call_of(3, &breaker, "a", Err(USELESS)), None, "its probe");
    assert_eq!(call_of(3, &breaker, "a", Ok(())), Some(FIRST_REST * 2));
    tokio::time::advance(FIRST_REST * 2).await;

    assert_eq!(call_of(3, &breaker, "a", Ok(())), None);
    // It works again: the others may see for themselves.
    for number in [1, 2, 4] {
        assert_eq!(call_of(number, &breaker, "a", Ok(())), None);
    }
    assert_eq!(breaker.open(), 0);
    assert!(!breaker.troubled.load(Ordering::Acquire));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_works_for_an_org_goes_on_working_for_it() {
    let breaker = Breaker::default();
    for number in [1, 2] {
        for _ in 0..THRESHOLD {
            call_of(number, &breaker, "a", Err(USELESS));
            assert_eq!(call_of(3, &breaker, "a", Ok(())), None);
        }
    }
    assert_eq!(call_of(3, &breaker, "a", Err(USELESS)), None, "two say no, it says yes");

    assert!(call_of(3, &breaker, "a", Ok(())).is_some(), "one failure makes three");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_keeps_nobody_else_from_probing() {
    let breaker = Breaker::default();
    let tool = name("a");
    for number in [1, 2] {
        fail(number, &breaker, USELESS);
    }
    assert!(call_of(3, &breaker, "a", Ok(())).is_some());
    tokio::time::advance(FIRST_REST).await;

    let hangs = breaker.admit(org(1), &tool, Instant::now()).unwrap();

    assert_eq!(call_of(1, &breaker, "a", Ok(())), Some(FIRST_REST), "one at a time of each");
    assert_eq!(call_of(2, &breaker, "a", Err(USELESS)), None);
    assert_eq!(call_of(3, &breaker, "a", Ok(())), None);
    drop(hangs);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_orgs_and_tools_is_bounded() {
    let breaker = Breaker::default();
    for number in 0..=MAX_TOOLS {
        call(&breaker, &format!("t{number}"), Err(USELESS));
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let mut health = Health::default();
    for number in 0..=MAX_ORGS {
        let org = format!("org_01M754BKTKX1YB8Q05NMW9{number:04}").parse().unwrap();
        health.fails(org, Instant::now(), false);
        tokio::time::advance(Duration::from_millis(1)).await;
    }

    let circuits = breaker.lock();
    assert_eq!(circuits.tools.len(), MAX_TOOLS);
    assert!(!circuits.tools.contains_key(&name("t0")) && circuits.tools.contains_key(&name("t1")));
    assert_eq!(health.orgs(), MAX_ORGS);
}
