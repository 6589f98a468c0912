//! The samples of configured detectors, tried.

use serde_json::{Value, json};

use crate::{
    engine::Engine,
    findings::{fingerprint::FingerprintKey, subject::Subject},
    limits::Limits,
};

/// A sample text of a configured detector, and whether the detector did with it what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub detector: String,
    /// Name and place of the detector, for messages.
    label: String,
    /// The sample's number in its list, from 1.
    pub number: usize,
    /// The sample with `a`, `A` and `0` in the place of its letters and digits: it may be a real value.
    pub form: String,
    /// The detector's pattern.
    pub pattern: String,
    /// True if it stands in `must_match` rather than in `must_not_match`.
    pub must_match: bool,
    /// True if the detector fired.
    pub matches: bool,
}

impl Sample {
    /// Returns true if the detector did what it should.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.must_match == self.matches
    }

    /// Describes the problem without the sample itself, which may be a real value.
    fn problem(self) -> Option<String> {
        let Self { label, number, form, pattern, must_match, .. } = &self;
        let (list, what) = match must_match {
            true => ("must_match", "is not found"),
            false => ("must_not_match", "is found"),
        };
        (!self.holds()).then(|| {
            format!(
                "{label}: `{list}` sample {number} {what}: its form is `{form}`, with `a`, `A` and `0` \
                 for letters and digits; the pattern is `{pattern}`"
            )
        })
    }
}

/// Characters of a sample or pattern that are shown.
const SHOWN: usize = 120;

/// The form of a text, without what it says.
fn form(text: &str) -> String {
    let kind = |it: char| match it {
        _ if it.is_numeric() => '0',
        _ if it.is_uppercase() => 'A',
        _ if it.is_alphabetic() => 'a',
        _ if it.is_control() => ' ',
        _ => it,
    };
    text.chars().take(SHOWN).map(kind).collect()
}

impl Engine {
    /// Everything that is wrong with the samples, in words.
    pub(super) fn sample_problems(&self) -> Vec<String> {
        self.samples().into_iter().filter_map(Sample::problem).collect()
    }

    /// Tries every sample of the configured detectors that are enabled.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let mut samples = Vec::new();
        let configured = self.scanner.active.iter().map(|active| &active.detector);
        for detector in configured.filter(|detector| !detector.is_built_in()) {
            let pattern = detector.pattern.as_ref().map_or("", |pattern| &pattern.source);
            for (texts, must_match) in [(&detector.positives, true), (&detector.negatives, false)] {
                samples.extend((1..).zip(texts).map(|(number, text)| Sample {
                    detector: detector.name().to_owned(),
                    label: detector.label.clone(),
                    number,
                    form: form(text),
                    pattern: pattern.chars().take(SHOWN).collect(),
                    must_match,
                    matches: self.finds(detector.name(), text),
                }));
            }
        }
        samples
    }

    /// Returns true if a detector fires on a text, or on a value if the text is a JSON object.
    fn finds(&self, detector: &str, text: &str) -> bool {
        let value = match serde_json::from_str(text) {
            Ok(object @ Value::Object(_)) => object,
            Ok(_) | Err(_) => json!(text),
        };
        let subject = Subject::of(FingerprintKey::new([0; 32]));
        let found = self.scan_within(&value, &subject, &Limits::default());
        found.is_ok_and(|(found, _)| found.iter().any(|it| it.detector() == detector))
    }
}
