//! The cost of a scan grows as the text does, whatever the text is made of.

use std::time::Duration;

use portcullis_json::Document;
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::{catalogue::detector::Shape, pace};

/// Sizes of the texts.
const SMALL: usize = 25 << 10;
const LARGE: usize = 100 << 10;

/// Growth that is allowed: four times the text costs four times as much, and a bit for memory.
const MOST: f64 = 5.0;

/// Ways in which literals, values and signs stand together in texts that cost much.
const FORMS: [&str; 8] = [
    "LITERAL=x1y2 ",
    "LITERAL: z9 ",
    "{LITERAL: x1}",
    "\"LITERAL\": \"x1\", ",
    "LITERAL ",
    "LITERAL",
    "<LITERAL>",
    "LITERAL,",
];

/// Signs that detectors and views wake at or look for, alone and beside a letter and a digit.
const SIGNS: &str = "@ : = . , ; - _ / \\ | & ? % # $ + * ~ ^ ! ( ) [ ] { } < > \" ' ` \n \t \u{200B} \u{E0041} \u{202E}";

/// Time of the processor that a scan of such a text takes, the best of some runs.
fn cost(unit: &str, size: usize, runs: usize) -> Duration {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap())
    };
    let document = Document::of(&json!({ "q": unit.repeat(size / unit.len()) }));
    let run = || {
        let begun = now();
        let scanned = engine().scan(document.root(), &key());
        drop(scanned);
        now().saturating_sub(begun)
    };
    (0..runs).map(|_| run()).min().unwrap()
}

/// Growth that no chance explains: the square would be 16.
const SURE: f64 = 12.0;

/// Growth of the cost of a text of such units that is four times as long. A high one is measured again, for
/// another program may have had the caches meanwhile.
fn growth(unit: &str) -> f64 {
    let ratio =
        |runs| cost(unit, LARGE, runs).as_secs_f64() / cost(unit, SMALL, runs).as_secs_f64();
    let mut measured = ratio(1);
    for runs in [2, 4, 8, 16] {
        if measured <= MOST || runs > 2 && measured > SURE {
            break;
        }
        measured = ratio(runs);
    }
    measured
}

fn assert_linear(units: impl IntoIterator<Item = String>) {
    let mut grown = units.into_iter().map(|unit| (growth(&unit), unit));
    let steep = grown.find(|(growth, _)| *growth > MOST);
    assert!(steep.is_none(), "{steep:?}");
}

/// All that wakes a detector or supports it, some of it in each form.
fn of_detector(detector: &Detector, form: usize) -> String {
    let woken = detector.literals();
    let words = woken.iter().map(String::as_str).chain(detector.context.iter().copied());
    let placed = words.zip((form..).map(|form| FORMS[form % FORMS.len()]));
    placed.take(64).map(|(word, form)| form.replace("LITERAL", word)).collect()
}

#[test]
fn texts_of_all_that_wakes_a_detector_cost_by_their_length() {
    let texts =
        engine().detectors().enumerate().map(|(form, detector)| of_detector(detector, form));
    assert_linear(texts.filter(|text| !text.is_empty()));
}

#[test]
fn names_and_values_on_one_line_cost_by_their_length() {
    let names = engine()
        .detectors()
        .filter(|detector| matches!(detector.shape, Shape::Value { .. } | Shape::Around { .. }));
    let literals = names.flat_map(Detector::literals);
    let units = literals.zip(FORMS.iter().cycle()).map(|(it, form)| form.replace("LITERAL", &it));
    let others = "password=x1y2 |secret: z9 |token=q |user: a password: b |{password: x}|\
        password is |<password>|\"password\", |--password |password:\n";
    assert_linear(units.chain(others.split('|').map(str::to_owned)));
}

#[test]
fn signs_cost_by_their_length() {
    let signs = SIGNS.split(' ').chain([" "]);
    let units = signs.flat_map(|sign| [sign.to_owned(), format!("{sign}a"), format!("{sign}1")]);
    let numbers =
        ["1 ", "41", "4111 1111 1111 1111 ", "a@b.co ", "1.1.1.1 ", "2001:db8::1 ", "+49 30 1 "];
    assert_linear(units.chain(numbers.map(str::to_owned)));
}

#[test]
fn a_scan_rests_between_windows_and_ends_where_it_shall() {
    let text = json!({ "q": "password=x1y2 ".repeat(10_000) });

    let ended = engine().scan_at(&text, &Subject::of(key()), |_| false).unwrap();
    let rested = engine().scan_at(&text, &Subject::of(key()), pace::without_rest).unwrap();

    assert!(ended.is_none());
    assert_eq!(rested.map(|found| found.count()), Some(scan(&text).count()));
}
