//! Every detector's own examples.

use super::*;

#[test]
fn every_detector_fires_on_its_positives_and_not_on_its_negatives() {
    let engine = engine();
    let mut wrong = Vec::new();
    for detector in engine.detectors() {
        for (examples, expected) in [(detector.positives(), true), (detector.negatives(), false)] {
            assert!(!examples.is_empty(), "{} has no examples", detector.label);
            for example in examples {
                let findings = engine.scan(&value(example), &key()).unwrap();
                if findings.detectors().contains(&detector.name()) != expected {
                    wrong.push(format!("{} {expected}: {example}", detector.label));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_about_detectors_is_up_to_date() {
    let page = include_str!("../../../../docs/detectors.md");

    assert!(page.trim_end() == catalogue(), "run `cargo run -- dlp detectors > docs/detectors.md`");
}

#[test]
fn there_is_a_detector_for_every_kind_that_is_promised() {
    let count = |category| {
        Engine::known_detectors().filter(|detector| detector.category() == category).count()
    };
    let others = [Category::Financial, Category::NationalId, Category::Health, Category::Contact]
        .map(count)
        .iter()
        .sum::<usize>();

    assert!(count(Category::Secret) >= 120, "{}", count(Category::Secret));
    assert!(others + count(Category::Network) >= 70, "{others}");
}

#[test]
fn names_are_unique_and_descriptions_are_there() {
    let mut names: Vec<&str> = Engine::known_detectors().map(Detector::name).collect();
    let total = names.len();

    names.sort_unstable();
    names.dedup();

    assert_eq!(names.len(), total);
    assert!(Engine::known_detectors().all(|detector| !detector.description().is_empty()));
    let is_name = |name: &&str| {
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    assert!(names.iter().all(is_name));
}

/// An example is a JSON object, or a text.
fn value(example: &str) -> Value {
    match serde_json::from_str(example) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => json!(example),
    }
}
