//! Checks of numbers that entries of the catalogue describe: parts, dates, check digits by weights.

use serde::Deserialize;

use crate::catalogue::checks::{
    at, is_date, is_short_date, luhn, mod_11_10, part, varied, verhoeff, weighted,
};

/// A rule for the digits of a match. Each part that the rule names has to hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DigitRule {
    /// Evidence of a match for which it holds.
    bits: i32,
    /// True if there has to be more than one digit.
    varied: bool,
    /// Zeros are put before fewer digits than these.
    pad: usize,
    parts: Vec<PartRule>,
    born: Option<Born>,
    /// A check digit by a scheme with a name.
    scheme: Option<Scheme>,
    sums: Vec<Sum>,
}

/// Numbers that some of the digits may make: `0..2: 1-24, 30`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct PartRule {
    from: usize,
    to: usize,
    allowed: Vec<(u32, u32)>,
}

/// A day among the digits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Born {
    /// Places of day, month and year: `..DDMMYY`.
    at: String,
    /// More than a day or a month is this number, or twice it, added to one.
    #[serde(default = "hundred")]
    day: u32,
    #[serde(default = "hundred")]
    month: u32,
}

const fn hundred() -> u32 {
    100
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Scheme {
    #[serde(rename = "luhn")]
    Luhn,
    #[serde(rename = "verhoeff")]
    Verhoeff,
    /// ISO/IEC 7064, MOD 11,10.
    #[serde(rename = "mod_11_10")]
    Mod1110,
}

/// A sum of digits, each times its weight, and what its remainder says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sum {
    /// Only of numbers with so many digits.
    length: Option<usize>,
    /// Place of the digit that has the first weight.
    from: usize,
    weights: Vec<u32>,
    /// The sum has this remainder by the modulus.
    modulus: u32,
    rest: u32,
    /// Or: for each remainder the digit at `at`, `-` for none, and `>` where `or` decides.
    check: String,
    at: usize,
    or: Option<Box<Sum>>,
}

impl DigitRule {
    /// The fault of the rule, in words.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_whole = |sum: &Sum| {
            !sum.weights.is_empty()
                && (sum.modulus > 1) == sum.check.is_empty()
                && sum.check.contains('>') == sum.or.is_some()
        };
        if !self.sums.iter().all(|sum| is_whole(sum) && sum.or.as_deref().is_none_or(is_whole)) {
            return Some("a sum has `weights`, and `modulus` or `check`; `>` in it goes with `or`");
        }
        let is_day = self.born.as_ref().is_none_or(|born| {
            let count = |class| born.at.matches(class).count();
            (count('D'), count('M')) == (2, 2) && matches!(count('Y'), 2 | 4)
        });
        (!is_day).then_some("`born` has `DD`, `MM`, and `YY` or `YYYY` in `at`")
    }

    /// Evidence of a match with these digits.
    pub(crate) fn bits(&self, mut digits: Vec<u8>) -> Option<i32> {
        let missing = self.pad.saturating_sub(digits.len());
        digits.splice(0..0, std::iter::repeat_n(0, missing));
        let is_right = match self.scheme {
            None => true,
            Some(Scheme::Luhn) => luhn(&digits),
            Some(Scheme::Verhoeff) => verhoeff(&digits),
            Some(Scheme::Mod1110) => mod_11_10(&digits),
        };
        let fits = is_right
            && (!self.varied || varied(&digits))
            && self.parts.iter().all(|part| part.holds(&digits))
            && self.born.as_ref().is_none_or(|born| born.holds(&digits))
            && self.sums.iter().all(|sum| sum.holds(&digits));
        fits.then_some(self.bits)
    }
}

impl PartRule {
    fn holds(&self, digits: &[u8]) -> bool {
        let number = part(digits, self.from, self.to);
        self.allowed.iter().any(|(least, most)| (*least..=*most).contains(&number))
    }
}

impl TryFrom<String> for PartRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (place, allowed) = text.split_once(": ")?;
            let (from, to) = place.split_once("..")?;
            let range = |it: &str| {
                let (least, most) = it.split_once('-').unwrap_or((it, it));
                Some((least.parse().ok()?, most.parse().ok()?))
            };
            let allowed = allowed.split(", ").map(range).collect::<Option<_>>()?;
            Some(Self { from: from.parse().ok()?, to: to.parse().ok()?, allowed })
        };
        read().ok_or_else(|| format!("`{text}` is not written as `0..2: 1-24, 30`"))
    }
}

impl Born {
    fn holds(&self, digits: &[u8]) -> bool {
        let read = |class| {
            let from = self.at.find(class).unwrap_or(usize::MAX);
            part(digits, from, from.saturating_add(self.at.matches(class).count()))
        };
        let year = read('Y');
        let month = read('M') % self.month.max(1);
        let day = read('D') % self.day.max(1);
        if self.at.contains("YYYY") {
            is_date(year, month, day)
        } else {
            is_short_date(year, month, day)
        }
    }
}

impl Sum {
    fn holds(&self, digits: &[u8]) -> bool {
        if self.length.is_some_and(|length| length != digits.len()) {
            return true;
        }
        let sum = weighted(digits.get(self.from..).unwrap_or_default(), &self.weights);
        if self.check.is_empty() {
            return sum % self.modulus.max(1) == self.rest;
        }
        let rest = usize::try_from(sum).unwrap_or_default() % self.check.len();
        match self.check.as_bytes().get(rest) {
            Some(b'>') => self.or.as_ref().is_some_and(|or| or.holds(digits)),
            Some(check) => u32::from(*check) == u32::from(b'0') + at(digits, self.at),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DigitRule, String> {
        #[derive(Deserialize)]
        struct Entry {
            digits: DigitRule,
        }
        let entry: Result<Entry, toml::de::Error> = toml::from_str(&format!("digits = {text}"));
        let rule = entry.map_err(|error| error.message().to_owned())?.digits;
        rule.problem().map_or(Ok(()), |problem| Err(problem.to_owned()))?;
        Ok(rule)
    }

    #[test]
    fn parts_and_days_are_read() {
        let rule = read("{ parts = [\"0..2: 1-24, 30\"], born = { at = \"..DDMMYY\", day = 40 } }");
        let rule = rule.unwrap();
        let holds = |digits: &[u8]| {
            rule.parts[0].holds(digits) && rule.born.as_ref().unwrap().holds(digits)
        };
        assert!(holds(&[2, 4, 7, 1, 1, 2, 9, 9]) && holds(&[3, 0, 2, 9, 0, 2, 0, 0]));
        assert!(!holds(&[2, 5, 3, 1, 1, 2, 9, 9]) && !holds(&[3, 0, 7, 2, 1, 2, 9, 9]));
    }

    #[test]
    fn the_remainder_tells_the_check_digit_or_another_sum_does() {
        let or = "{ weights = [3], check = \"0-2\", at = 2 }";
        let sum = format!("{{ weights = [1, 2], check = \"01>\", at = 2, or = {or} }}");
        let rule = read(&format!("{{ sums = [{sum}] }}")).unwrap();
        let holds = |digits: &[u8]| rule.sums[0].holds(digits);
        assert!(holds(&[1, 1, 0]) && holds(&[2, 1, 1]) && holds(&[0, 1, 0]));
        assert!(!holds(&[1, 1, 1]) && !holds(&[0, 1, 1]));
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_said() {
        for (text, expected) in [
            ("{ parts = [\"1 to 2\"] }", "`1 to 2` is not written as `0..2: 1-24, 30`"),
            ("{ sums = [{ weights = [1] }] }", "a sum has `weights`"),
            ("{ sums = [{ weights = [1], check = \">\", at = 1 }] }", "a sum has `weights`"),
            ("{ born = { at = \"DDMM\" } }", "`born` has `DD`"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
