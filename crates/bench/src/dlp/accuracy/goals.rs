//! Goals of accuracy.

use serde_json::{Value, json};

use super::{Kind, Results};

/// One figure and its bound.
pub(super) struct Goal {
    name: String,
    bound: Bound,
    measured: f64,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Results {
    /// The goals of everything that was measured.
    pub(super) fn goals(&self) -> Vec<Goal> {
        use Bound::{AtLeast, AtMost};
        use Kind::{Bare, Evasion, Given, Named, Negative, Sentence, Structure};
        let mut goals = Vec::new();
        let mut add = |name: &str, bound, kinds: &[Kind], group: &str| {
            let row = self
                .sum(|kind, other| kinds.contains(&kind) && (group.is_empty() || group == other));
            let is_action = kinds.iter().any(|kind| matches!(kind, Negative | Evasion));
            let measured = if is_action { row.share_acted_on() } else { row.share_found() };
            if row.cases > 0 {
                goals.push(Goal { name: name.to_owned(), bound, measured });
            }
        };
        let all = [Given, Bare, Named, Structure, Sentence];
        add("found, bare numbers left out", AtLeast(0.95), &all, "");
        add("found with a word or key", AtLeast(0.98), &[Named, Structure], "");
        add("cards in sentences", AtLeast(0.97), &[Sentence], "CREDIT_CARD");
        add("telephone numbers in sentences", AtLeast(0.90), &[Sentence], "PHONE_NUMBER");
        add("negatives acted on", AtMost(0.02), &[Negative], "");
        add("evasions stopped", AtLeast(0.95), &[Evasion], "");
        if self.decodable.cases > 0 {
            goals.push(Goal {
                name: "evasions stopped, of what is acted on unspelled".to_owned(),
                bound: AtLeast(0.95),
                measured: self.decodable.share_acted_on(),
            });
        }
        for (name, row) in &self.corpora {
            let (acted_on, possible) = row.alarms();
            goals.push(Goal {
                name: format!("acted on per MB of {name}"),
                bound: AtMost(1.0),
                measured: acted_on,
            });
            if name == WEBHOOKS {
                goals.push(Goal {
                    name: format!("flagged as possible per MB of {name}"),
                    bound: AtMost(50.0),
                    measured: possible,
                });
            }
        }
        goals
    }
}

/// The corpus that has a goal for flags as well.
const WEBHOOKS: &str = "webhooks";

impl Goal {
    pub(super) fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.measured >= least,
            Bound::AtMost(most) => self.measured <= most,
        }
    }

    pub(super) fn line(&self) -> String {
        let (sign, bound) = self.bound.parts();
        let holds = if self.holds() { "yes" } else { "no" };
        format!("| {} | {sign} {bound} | {:.3} | {holds} |\n", self.name, self.measured)
    }

    pub(super) fn json(&self) -> Value {
        let (sign, bound) = self.bound.parts();
        json!({
            "name": self.name,
            "bound": format!("{sign} {bound}"),
            "measured": self.measured,
            "holds": self.holds(),
        })
    }
}

impl Bound {
    fn parts(self) -> (&'static str, f64) {
        match self {
            Self::AtLeast(least) => ("≥", least),
            Self::AtMost(most) => ("≤", most),
        }
    }
}
