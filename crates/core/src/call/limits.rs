//! Rate limits as obligations: taken before the call, given back when it is refused all the same.

use serde_json::{Map, Value, json};

use super::{
    denial::{Denial, Grounds},
    ruling::Ruling,
};
use crate::policy::{Full, Obligation, Rate};

/// Counts what has been taken from rates. A rate that is not counted would be no limit, so there is
/// no call without one of these.
pub trait Limiter {
    /// Takes one from the rate of this key, or says when there will be room.
    fn take(&self, key: &str, rate: Rate) -> Result<(), Full>;

    /// Gives one back to the rate of this key.
    fn give_back(&self, key: &str, rate: Rate);
}

/// Reservation of one call in its rates. Given back when it is dropped, unless it is kept.
pub(super) struct Taken<'a> {
    limiter: &'a dyn Limiter,
    taken: Vec<(String, Rate)>,
}

impl<'a> Taken<'a> {
    /// Takes from every rate that the obligations name. Denies by the policy of the first that is
    /// used up.
    pub(super) fn all(
        obligations: &[Obligation],
        limiter: &'a dyn Limiter,
        ruling: &Ruling,
    ) -> Result<Self, Denial> {
        let mut taken = Self { limiter, taken: Vec::new() };
        for obligation in obligations {
            let Obligation::RateLimit { key, rate, reason, .. } = obligation else { continue };
            match limiter.take(key, *rate) {
                Ok(()) => taken.taken.push((key.clone(), *rate)),
                Err(full) => {
                    let mut ruling = ruling.clone();
                    ruling.decided_by_obligation(obligation);
                    let grounds = Grounds::Limit(used_up(obligation, full));
                    return Err(Denial::ruled(grounds, ruling, reason.clone()));
                }
            }
        }
        Ok(taken)
    }

    /// The call is made.
    pub(super) fn keep(mut self) {
        self.taken.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (key, rate) in self.taken.drain(..) {
            self.limiter.give_back(&key, rate);
        }
    }
}

fn used_up(obligation: &Obligation, full: Full) -> Map<String, Value> {
    let mut shown = obligation.to_json();
    if let Some(Value::Object(properties)) = shown.get_mut("properties") {
        properties.insert("retry_after".to_owned(), full.retry_after_s.into());
    }
    Map::from_iter([
        ("obligation".to_owned(), shown),
        ("retry_after".to_owned(), json!(full.retry_after_s)),
    ])
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, sync::Arc};

    use super::*;
    use crate::{
        call::{Asker, PinState, Use},
        capability::{Capability, Definition},
        clock::Timestamp,
        dlp::{Engine, FingerprintKey, Settings, Subject},
        id::OrgId,
        json::Document,
        policy::{Catalogue, PolicyFile, PolicySet, Principal},
        principal::{AuthMethod, Caller, Plan, Role, ScopeSet},
    };

    const POLICIES: &str = r#"
        @id("all") permit (principal, action, resource);
        @id("once") @reason("Once is enough") @rate_limit("1/1h per=org")
        forbid (principal, action, resource);
        @id("mask") @reason("r") @redact("input: email") forbid (principal, action, resource);
    "#;

    /// Limiter that records what is taken and given back, in order; `full` refuses.
    #[derive(Default)]
    struct Counted {
        full: bool,
        seen: RefCell<Vec<&'static str>>,
    }

    impl Limiter for Counted {
        fn take(&self, _: &str, _: Rate) -> Result<(), Full> {
            self.seen.borrow_mut().push("take");
            if self.full { Err(Full { retry_after_s: 7 }) } else { Ok(()) }
        }

        fn give_back(&self, _: &str, _: Rate) {
            self.seen.borrow_mut().push("give back");
        }
    }

    fn caller() -> Caller {
        let id = "01M754BKTKX1YB8Q05NMW9TP4G";
        Caller {
            org_id: format!("org_{id}").parse::<OrgId>().unwrap(),
            plan: Plan::Free,
            principal_id: format!("usr_{id}").parse().unwrap(),
            principal_name: "somebody".to_owned(),
            role: Role::Member,
            via: None,
            token_id: format!("tok_{id}").parse().ok(),
            label: None,
            scopes: ScopeSet::ALL,
            method: AuthMethod::Operator,
            allowed_from: None,
            lineage: Arc::default(),
            client: None,
            is_operator: false,
        }
    }

    /// Runs a call of a tool that takes an address, as far as its obligations.
    fn run(to: &str, limiter: &Counted) -> Result<(), Denial> {
        let slug = "mail".parse().unwrap();
        let definition = Definition::new(
            "send".parse().unwrap(),
            json!({
                "type": "object", "properties": { "to": { "type": "string", "pattern": "^[a-z@.]+$" } },
            }),
        );
        let tool = Arc::new(Capability::new(&slug, definition, Timestamp::default()).unwrap());
        let catalogue = Catalogue::new([(slug, Some(vec![Arc::clone(&tool)]))]);
        let file = PolicyFile { path: "p.cedar".to_owned(), text: POLICIES.to_owned() };
        let set = PolicySet::load(vec![file], &catalogue, &["email"], Timestamp::default());
        let engine = Engine::new(&Settings::default()).unwrap();
        let principal = Principal::of(&caller());
        let capture = crate::audit::Capture::Commit;
        let asker =
            Asker { principal: &principal, time: Timestamp::default(), source_ip: None, capture };
        let input = Document::of(&json!({ "to": to }));
        let call = Use::new(&engine, tool, PinState::Accepted, input, 0).unwrap();
        let subject = Subject::of(FingerprintKey::new([7; 32]));
        let scanned = call.scan(&engine, &subject).unwrap();
        let permitted = scanned.decide(&set.unwrap(), &engine, asker).unwrap();
        permitted.fulfil(&engine, limiter).map(|_| ())
    }

    #[test]
    fn a_call_that_is_made_keeps_what_it_took() {
        let counted = Counted::default();

        run("nobody", &counted).unwrap();

        assert_eq!(*counted.seen.borrow(), ["take"]);
    }

    #[test]
    fn a_call_that_is_refused_all_the_same_gives_back_what_it_took() {
        let counted = Counted::default();

        // Masked, the address is nothing that the tool takes.
        let denial = run("ana@acme.com", &counted).unwrap_err();

        assert_eq!(denial.policy(), Some("mask"));
        assert_eq!(*counted.seen.borrow(), ["take", "give back"]);
    }

    #[test]
    fn a_rate_that_is_used_up_denies_by_its_policy_and_says_when_there_is_room() {
        let counted = Counted { full: true, ..Counted::default() };

        let denial = run("nobody", &counted).unwrap_err();

        assert_eq!((denial.policy(), &*denial.reason), (Some("once"), "Once is enough"));
        let refusal = denial.refusal();
        assert_eq!(refusal.details()["retry_after"], 7);
        assert_eq!(refusal.details()["obligation"]["properties"]["retry_after"], 7);
        assert_eq!(*counted.seen.borrow(), ["take"]);
    }
}
