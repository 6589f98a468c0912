//! The law of approvals, case by case and in random stories.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::node;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn id(kind: &str, last: char) -> String {
    format!("{kind}_01M754BKTKX1YB8Q05NMW9TP4{last}")
}

fn user(last: char) -> PrincipalId {
    id("usr", last).parse().unwrap()
}

fn terms() -> ApprovalTerms {
    ApprovalTerms {
        approvals: 1,
        approvers: BTreeSet::from(["finance".to_owned()]),
        hidden: false,
        mfa: false,
        ttl_s: 900,
        uses: 1,
    }
}

fn pending(terms: ApprovalTerms) -> Approval {
    let new = NewApproval {
        id: id("apr", 'G').parse().unwrap(),
        org_id: id("org", 'G').parse().unwrap(),
        digest: "sha256:00".to_owned(),
        requester: Requester {
            actors: vec![user('A')],
            principal_id: user('G'),
            principal_name: "Ana".to_owned(),
        },
        policy: AskingPolicy {
            id: "payouts".to_owned(),
            reason: "r".to_owned(),
            version: "sha256:01".to_owned(),
        },
        tool: BoundTool {
            description: None,
            id: "bank:pay".to_owned(),
            title: None,
            version: "sha256:02".to_owned(),
        },
        connection: id("prv", 'G').parse().unwrap(),
        terms,
        input: json!({"amount": 7}),
        findings: Vec::new(),
    };
    Approval::request(new, NOW)
}

fn person(last: char) -> Approver {
    Approver {
        id: user(last),
        name: format!("person {last}"),
        delegated: false,
        admin: false,
        groups: BTreeSet::from(["finance".to_owned()]),
        mfa: false,
    }
}

fn approve(approval: &Approval, who: Approver, now: Timestamp) -> Result<Approval, DecisionError> {
    approval.decided(&Decider::Principal(who), Vote::Approve, None, now)
}

#[test]
fn one_yes_approves_and_the_call_runs_once() {
    let later = NOW.plus_seconds(60);

    let approved = approve(&pending(terms()), person('B'), later).unwrap();
    let used = approved.used(later).unwrap();

    assert_eq!(approved.status, Status::Approved);
    assert_eq!(approved.expires_at, later.plus_seconds(900));
    assert_eq!(approved.approvers().collect::<Vec<_>>(), ["person B"]);
    assert_eq!((used.status, used.uses_left), (Status::Consumed, 0));
    assert_eq!(used.used(later), None);
}

#[test]
fn only_people_of_the_groups_who_are_not_the_requester_decide() {
    let service = Approver { id: id("sa", 'B').parse().unwrap(), admin: true, ..person('B') };
    let table = [
        (person('B'), Ok(())),
        (service, Err(DecisionError::Service)),
        (Approver { delegated: true, ..person('B') }, Err(DecisionError::Delegated)),
        (person('G'), Err(DecisionError::Requester)),
        (person('A'), Err(DecisionError::Requester)),
        (Approver { admin: true, ..person('G') }, Err(DecisionError::Requester)),
        (Approver { groups: BTreeSet::new(), ..person('B') }, Err(DecisionError::NotApprover)),
        (Approver { groups: BTreeSet::new(), admin: true, ..person('B') }, Ok(())),
    ];
    for (who, expected) in table {
        let said = approve(&pending(terms()), who.clone(), NOW).map(drop);
        assert_eq!(said, expected, "{who:?}");
    }
}

#[test]
fn a_second_factor_is_asked_for_where_the_policy_says_so() {
    let approval = pending(ApprovalTerms { mfa: true, ..terms() });

    assert_eq!(approve(&approval, person('B'), NOW), Err(DecisionError::SecondFactor));
    let admin = Approver { admin: true, ..person('B') };
    assert_eq!(approve(&approval, admin, NOW), Err(DecisionError::SecondFactor));
    assert!(approve(&approval, Approver { mfa: true, ..person('B') }, NOW).is_ok());
}

#[test]
fn several_people_have_to_agree_and_one_no_ends_it() {
    let two = pending(ApprovalTerms { approvals: 2, ..terms() });

    let one = approve(&two, person('B'), NOW).unwrap();

    assert_eq!(one.status, Status::Pending);
    assert_eq!(approve(&one, person('B'), NOW), Err(DecisionError::Twice));
    assert_eq!(approve(&one, person('C'), NOW).unwrap().status, Status::Approved);
    let no = one.decided(&Decider::Principal(person('C')), Vote::Deny, None, NOW).unwrap();
    assert_eq!(no.status, Status::Denied);
    let settled = Err(DecisionError::Settled(Status::Denied));
    assert_eq!(approve(&no, person('D'), NOW), settled);
}

#[test]
fn time_ends_what_is_pending_and_what_is_approved() {
    let end = NOW.plus_seconds(900);
    let approval = pending(terms());

    assert_eq!(approval.status_at(end), Status::Expired);
    let late = Err(DecisionError::Settled(Status::Expired));
    assert_eq!(approve(&approval, person('B'), end), late);
    let approved = approve(&approval, person('B'), NOW).unwrap();
    assert_eq!(approved.used(end), None);
    assert_eq!(approved.expired(end).unwrap().status, Status::Expired);
    assert_eq!(approved.expired(NOW), None);
}

#[test]
fn a_digest_is_that_of_one_very_call() {
    let input = json!({"amount": 7, "to": "DE"});
    let call = BoundCall {
        org: id("org", 'G').parse().unwrap(),
        principal: user('G'),
        via: None,
        client: None,
        tool: "bank:pay",
        tool_version: "sha256:02",
        connection: id("prv", 'G').parse().unwrap(),
        input: node(&input),
        responses: None,
        task: None,
        policy: "payouts",
        policy_version: "sha256:01",
    };

    assert_eq!(call.digest(), VECTOR);
    assert!(include_str!("../../../../docs/verify_audit.py").contains(VECTOR));
    let reordered: Value = serde_json::from_str(r#"{"to": "DE","amount":7}"#).unwrap();
    assert_eq!(BoundCall { input: node(&reordered), ..call }.digest(), VECTOR);
    let spelled: Value = serde_json::from_str(r#"{"to":"DE","amount":7.0}"#).unwrap();
    let spaced = json!({"amount": 7, "to": "DE "});
    let others = [
        BoundCall { input: node(&spelled), ..call },
        BoundCall { input: node(&spaced), ..call },
        BoundCall { responses: Some(node(&spaced)), ..call },
        BoundCall { via: Some(user('A')), ..call },
        BoundCall { client: Some("desk"), ..call },
        BoundCall { task: Some(id("evt", 'G').parse().unwrap()), ..call },
        BoundCall { principal: user('A'), ..call },
        BoundCall { tool: "bank:pay2", ..call },
        BoundCall { tool_version: "sha256:03", ..call },
        BoundCall { policy: "payout", ..call },
        BoundCall { policy_version: "sha256:03", ..call },
        BoundCall { org: id("org", 'A').parse().unwrap(), ..call },
        BoundCall { connection: id("prv", 'A').parse().unwrap(), ..call },
    ];
    let mut seen = BTreeSet::from([VECTOR.to_owned()]);
    for other in others {
        assert!(seen.insert(other.digest()), "{other:?}");
    }
}

/// Made with Python's `json` and `hashlib` from the text in docs/approvals.md.
const VECTOR: &str = "sha256:7793fa2d927dc2fa20b9ab42d4fe76a793d56568e68acf3a6c3f8fb5ca991873";

#[test]
fn terms_are_read_strictly() {
    let seconds = |text: &str| match text {
        "15m" => Some(900),
        "1m" => Some(60),
        "59s" => Some(59),
        "7d" => Some(604_800),
        "8d" => Some(691_200),
        _ => None,
    };
    let read = |text: &str| ApprovalTerms::parse(text, seconds);

    assert_eq!(read("approvers=finance"), Ok(terms()));
    let all = read("mfa=true uses=100 approvals=10 ttl=7d hidden=true approvers=a,b").unwrap();
    assert_eq!((all.mfa, all.uses, all.approvals, all.ttl_s), (true, 100, 10, 604_800));
    assert!(all.hidden && !read("approvers=a").unwrap().hidden);
    assert_eq!(all.approvers.len(), 2);
    let wrongs = " | finance | ttl=15m | approvers= | approvers=a ttl=59s | approvers=a ttl=8d | \
        approvers=a ttl=x | approvers=a uses=0 | approvers=a uses=101 | \
        approvers=a approvals=0 | approvers=a approvals=11 | approvers=a mfa=yes | \
        approvers=a hidden=1 | approvers=a hidden=true hidden=false | approvers=a approvers=b | \
        approvers=a colour=red";
    for wrong in wrongs.split(" | ") {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

/// One step of a random story.
#[derive(Debug, Clone)]
enum Step {
    Decide(char, Vote),
    Use,
    /// The clock goes on by so many seconds, or jumps back.
    Wait(i64),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::sample::select(vec!['A', 'B', 'C', 'G']), prop::bool::weighted(0.8)).prop_map(
            |(who, yes)| Step::Decide(who, if yes { Vote::Approve } else { Vote::Deny })
        ),
        3 => Just(Step::Use),
        1 => (-600_i64..1_000).prop_map(Step::Wait),
        1 => Just(Step::Expire),
    ]
}

proptest! {
    #[test]
    fn a_call_never_runs_without_enough_approvers_nor_too_often(
        steps in prop::collection::vec(step(), 1..60),
        (approvals, uses) in (1_u32..3, 1_u32..4),
    ) {
        let mut approval = pending(ApprovalTerms { approvals, uses, ..terms() });
        let mut now = NOW;
        let mut runs = 0;
        let mut settled = None;
        for step in steps {
            let next = match step {
                Step::Decide(who, vote) => {
                    approval.decided(&Decider::Principal(person(who)), vote, None, now).ok()
                }
                Step::Use => approval.used(now).inspect(|_| runs += 1),
                Step::Wait(seconds) => { now = now.plus_seconds(seconds); None }
                Step::Expire => approval.expired(now),
            };
            approval = next.unwrap_or(approval);
            prop_assert!(runs <= uses);
            if runs > 0 {
                let yes = approval.approvers().count();
                prop_assert!(yes >= usize::try_from(approvals).unwrap());
                prop_assert!(!approval.approvers().any(|name| name == "person G" || name == "person A"));
            }
            let open = approval.status.is_open();
            if let Some(end) = settled { prop_assert_eq!(end, approval.status); }
            if !open { settled = Some(approval.status); }
        }
    }
}

#[test]
fn a_requester_gives_up_what_can_still_change_only() {
    let open = pending(terms());
    let late = NOW.plus_seconds(900);
    let operator = Decider::Operator;
    let approved = open.decided(&operator, Vote::Approve, None, NOW).unwrap();
    let denied = open.decided(&operator, Vote::Deny, None, NOW).unwrap();

    for it in [&open, &approved] {
        let given_up = it.withdraw(NOW).unwrap();
        assert_eq!((given_up.status, given_up.withdrawn), (Status::Expired, true));
        assert_eq!((given_up.used(NOW), given_up.withdraw(NOW)), (None, None));
        assert!(given_up.decided(&operator, Vote::Approve, None, NOW).is_err());
    }
    assert_eq!(denied.withdraw(NOW), None);
    assert_eq!(approved.used(NOW).unwrap().withdraw(NOW), None);
    assert_eq!(open.withdraw(late), None);
}
