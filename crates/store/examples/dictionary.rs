//! Makes the dictionary that records are compressed with, from made-up calls:
//! `cargo run -p portcullis-store --example dictionary -- crates/store/src/db/record-2.dict`.
//!
//! A dictionary that records were written with is never made anew: another one gets the next number.

#![expect(clippy::expect_used, reason = "an id of the right letters is an id")]

use std::{env, error::Error, fmt::Debug, fs, str::FromStr, sync::Mutex};

use portcullis_core::{
    audit::{
        Actor, Auth, Credential, Detached, DlpFinding, DlpResult, Durations, Event, EventParts,
        EventType, Governance, Outcome, OutcomeStatus, RecordedDecision, Request, Target,
    },
    clock::Timestamp,
    json,
    random::Random,
    refusal::Executed,
};
use serde_json::json;

const SAMPLES: u64 = 3_000;
const BYTES: usize = 4 << 10;
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Numbers that look random and are the same in every run (splitmix64).
#[derive(Debug)]
struct Dice(Mutex<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_of<'a>(&self, all: &[&'a str]) -> &'a str {
        let place = usize::try_from(self.roll(all.len() as u64)).unwrap_or(0);
        all.get(place).copied().unwrap_or_default()
    }

    fn one_in(&self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn id<T: FromStr<Err: Debug>>(&self, prefix: &str) -> T {
        let letter = |_| LETTERS.get(usize::try_from(self.roll(32)).unwrap_or(0)).copied();
        let rest: String = (0..20).filter_map(letter).map(char::from).collect();
        format!("{prefix}_01M{}8C{rest}", self.roll(10)).parse().expect("an id")
    }

    fn digest(&self) -> String {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        json::digest_text(&bytes)
    }
}

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = u8::try_from(self.roll(256)).unwrap_or(0);
        }
    }
}

fn governance(dice: &Dice) -> Governance {
    let policies =
        ["read-only-tools-for-services", "members-may-read", "admins", "agents-may-write"];
    let policy = dice.one_of(&policies);
    let is_denied = dice.one_in(8);
    let finding = || DlpFinding {
        action: dice.one_of(&["flag", "redact", "block"]),
        count: 1,
        detector: dice
            .one_of(&["email", "credit_card", "private_key", "aws_access_key"])
            .to_owned(),
        fingerprints: Vec::new(),
        path: dice
            .one_of(&["/content/0/text", "/structuredContent/email", "/input/body"])
            .to_owned(),
        stage: dice.one_of(&["input", "output"]),
    };
    let has_finding = dice.one_in(4);
    Governance {
        approvals: Vec::new(),
        decision: Some(if is_denied { RecordedDecision::Deny } else { RecordedDecision::Allow }),
        determining_policies: vec![policy.to_owned()],
        dlp_findings: has_finding.then(finding).into_iter().collect(),
        dlp_result: if has_finding { DlpResult::Redacted } else { DlpResult::Passed },
        policy: Some(policy.to_owned()),
        policy_set: Some(dice.digest()),
        policy_version: Some(dice.digest()),
        reason: is_denied.then(|| "Agents list at most 50 items a call".to_owned()),
        shadow: Vec::new(),
    }
}

fn detached(dice: &Dice) -> Detached {
    let is_person = dice.one_in(3);
    let role = if is_person { "member" } else { "service" };
    let source = format!("10.{}.{}.{}", dice.roll(256), dice.roll(256), dice.roll(256));
    let inputs = json!({
        "principal": { "roles": [role], "scopes": ["mcps:invoke", "mcps:read"] },
        "request": { "bytes": dice.roll(2_000), "mfa": is_person },
    });
    let mut detached = Detached::default()
        .keep("actor_name", Some(dice.one_of(&["ci", "ada", "support-agent"])), dice)
        .keep("label", dice.one_in(4).then_some("claude-code"), dice)
        .keep("source_ip", Some(source), dice)
        .keep("user_agent", dice.one_in(2).then_some("python-httpx/0.28.1"), dice)
        .keep("decision_inputs", Some(inputs), dice);
    detached.commit("input", &json!(dice.roll(1_000_000)), dice);
    detached.commit("output", &json!(dice.roll(1_000_000)), dice);
    detached
}

fn call(dice: &Dice) -> Event {
    let tools = ["github:create_issue", "jira:search", "files:read_file", "sample:list_items"];
    let method = if dice.one_in(3) { "token" } else { "operator" };
    let outcome = Outcome { status: OutcomeStatus::Success, ..Outcome::success(Executed::Yes) };
    Event {
        id: dice.id("evt"),
        org_id: dice.id("org"),
        kind: EventType::McpInvocation,
        occurred_at: Timestamp::from_micros(
            1_790_000_000_000_000 + i64::try_from(dice.roll(100_000_000_000_000)).unwrap_or(0),
        ),
        count: None,
        actor: Actor {
            act: None,
            auth: Auth { method, trust: None },
            client: None,
            id: Some(dice.id("sa")),
            token_id: Some(dice.id("tok")),
            kind: "service",
            via: dice.one_in(5).then(|| dice.id("usr")),
        },
        request: Some(Request { id: dice.id("req"), idempotent: dice.one_in(6), trace_id: None }),
        target: Some(Target {
            capability: None,
            credential: Some(if dice.one_in(4) { Credential::Own } else { Credential::Org }),
            id: Some(dice.one_of(&tools).to_owned()),
            provider_id: Some(dice.id("prv")),
            kind: "mcp",
            version: Some(dice.digest()),
        }),
        governance: Some(governance(dice)),
        outcome,
        detached: detached(dice),
    }
}

fn durations(dice: &Dice) -> Durations {
    let stages = [
        ("authenticate", 20),
        ("body", 40),
        ("connection", 10),
        ("dlp_input", 200),
        ("dlp_output", 500),
        ("intent", 4_000),
        ("limits", 10),
        ("policy_input", 200),
        ("policy_output", 100),
        ("upstream", 200_000),
        ("validate", 60),
    ];
    Durations::new(stages.map(|(stage, longest)| (stage, dice.roll(longest))).to_vec())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("name the file to write")?;
    let dice = Dice(Mutex::new(1));
    let sample = |_| {
        let event = call(&dice);
        let durations = durations(&dice);
        let record = EventParts { durations: Some(&durations), ..event.parts() }.kept_json();
        let mut values = String::new();
        let mut seed = String::new();
        event.detached.write_values(&mut values);
        event.detached.write_seed(&mut seed);
        let texts = [record, values, seed];
        texts.join("\n")
    };
    let samples: Vec<String> = (0..SAMPLES).map(sample).collect();
    let dictionary = zstd::dict::from_samples(&samples, BYTES)?;
    fs::write(&path, dictionary)?;
    Ok(())
}
