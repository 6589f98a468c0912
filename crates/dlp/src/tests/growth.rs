//! The cost of a scan grows as the text does, whatever the text is made of.

use std::time::Duration;

use portcullis_json::Document;
use rustix::time::{ClockId, clock_gettime};

use super::{spellings::Numbers, *};
use crate::{
    catalogue::detector::Shape,
    pace::{self, Meter, STEPS_A_BYTE},
};

/// Sizes of the texts.
const SMALL: usize = 25 << 10;
const LARGE: usize = 100 << 10;

/// Growth that is allowed: four times the text costs four times as much, and a bit for memory.
const MOST: f64 = 5.0;

/// Ways in which literals, values and signs stand together in texts that cost much.
const FORMS: [&str; 8] = [
    "LITERAL=x1y2 ", "LITERAL: z9 ", "{LITERAL: x1}", "\"LITERAL\": \"x1\", ", "LITERAL ",
    "LITERAL", "<LITERAL>", "LITERAL,",
];

/// Signs that detectors and views wake at or look for, alone and beside a letter and a digit.
const SIGNS: &str = "@ : = . , ; - _ / \\ | & ? % # $ + * ~ ^ ! ( ) [ ] { } < > \" ' ` \n \t \u{200B} \u{E0041} \u{202E}";

/// Makes a text of about such a size.
type Make<'a> = &'a dyn Fn(usize) -> Value;

fn repeated(unit: &str, size: usize) -> String {
    unit.repeat(size / unit.len())
}

/// Time of the processor that a scan of a value takes, the best of some runs.
fn cost(value: &Value, runs: usize) -> Duration {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap())
    };
    let document = Document::of(value);
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

/// Cost of the first value by that of the second. A high one is measured again, for another program may have
/// had the caches meanwhile.
fn ratio(first: &Value, second: &Value, most: f64) -> f64 {
    let ratio = |runs| cost(first, runs).as_secs_f64() / cost(second, runs).as_secs_f64();
    let mut measured = ratio(1);
    for runs in [2, 4, 8, 16] {
        if measured <= most || runs > 2 && measured > SURE {
            break;
        }
        measured = ratio(runs);
    }
    measured
}

/// Growth of the cost of a text that is four times as long.
fn growth(make: Make<'_>) -> f64 {
    ratio(&make(LARGE), &make(SMALL), MOST)
}

fn assert_linear(units: impl IntoIterator<Item = String>) {
    let of = |unit: &String| growth(&|size| json!({ "q": repeated(unit, size) }));
    let mut grown = units.into_iter().map(|unit| (of(&unit), unit));
    let steep = grown.find(|(growth, _)| *growth > MOST);
    assert!(steep.is_none(), "{steep:?}");
}

/// Characters of a unit that stand behind the last.
const FOLLOWING: usize = 256;

/// Steps of a scan of a text of so many units. Behind the last of them stands the beginning of one, as
/// behind the others: some words cost more before what follows there.
fn steps(unit: &str, times: usize) -> f64 {
    let begins: String = unit.chars().take(FOLLOWING).collect();
    let document = Document::of(&json!({ "q": unit.repeat(times) + &begins }));
    let steps = engine().steps(document.root()).unwrap();
    f64::from(u32::try_from(steps).unwrap())
}

/// The same of objects in objects below such names.
fn nested_steps(names: &[String], times: usize) -> f64 {
    let nest = |inside, name: &String| json!({ name.as_str(): inside, "n": name });
    let tower = names.iter().fold(json!("x1y2"), nest);
    let steps = engine().steps(&Value::from(vec![tower; times])).unwrap();
    f64::from(u32::try_from(steps).unwrap())
}

/// All that wakes a detector, supports one or names a value, each once.
fn words() -> Vec<String> {
    let labels = "name key type value text content system columns rows password data";
    let mut words: Vec<String> = labels.split(' ').map(str::to_owned).collect();
    for detector in engine().detectors() {
        words.extend(detector.wakes_at());
        words.extend(detector.context.iter().cloned());
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// Words that are tried together, each many times in a row.
const TOGETHER: usize = 16;
const IN_A_ROW: usize = 32;

#[test]
fn texts_of_all_that_wakes_a_detector_take_steps_by_their_length() {
    let words = words();
    let ahead = words.iter().cycle().skip(words.len() / 2);
    let rows: Vec<String> = words
        .iter()
        .zip(ahead)
        .zip(0..)
        .map(|((word, other), way)| match way % 3 {
            0 => FORMS[way / 3 % FORMS.len()].replace("LITERAL", word),
            1 => format!("{word}{other}"),
            _ => format!("{word}={other} "),
        })
        .map(|unit| unit.repeat(IN_A_ROW))
        .collect();
    let signs = SIGNS.split(' ').filter(|sign| !sign.is_empty());
    let units = rows.chunks(TOGETHER).map(<[String]>::concat);
    for unit in units.chain(signs.map(str::to_owned)) {
        let times = SMALL / unit.len();
        let large = steps(&unit, 4 * times);
        let growth = large / steps(&unit, times);
        let begins: String = unit.chars().take(80).collect();
        assert!(growth <= MOST, "{growth} {begins:?}");
        let a_byte = large / f64::from(u32::try_from(4 * times * unit.len()).unwrap());
        assert!(a_byte < 0.75 * f64::from(STEPS_A_BYTE), "{a_byte} {begins:?}");
    }
    for names in words.chunks(TOGETHER) {
        let growth = nested_steps(names, 120) / nested_steps(names, 30);
        assert!(growth <= MOST, "{growth} {names:?}");
    }
}

/// Steps of a microsecond for each byte of a text that is nothing but what wakes detectors.
const MICROSECOND: f64 = 320.0;

#[test]
fn no_word_that_wakes_a_detector_takes_more_than_a_microsecond_a_byte() {
    let words = words();
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let others = words.iter().map(|_| &words[numbers.below(words.len())]);
    let pairs: Vec<String> =
        words.iter().zip(others).map(|(word, other)| format!("{word} {other} ")).collect();
    let alone = words.iter().flat_map(|word| [word.clone(), format!("{word} ")]);
    let hidden = [
        "ignore \u{200B}", "i\u{200B}gnore ", "ignore all ", "do not tell the user ",
        "assistant: ignore ", "api_КЛЮЧ \nuser: ",
    ];
    let a_byte = |unit: String| {
        let times = 2048 / unit.len() + 1;
        let bytes = u32::try_from(times * unit.len()).unwrap();
        (steps(&unit, times) / f64::from(bytes), unit)
    };
    let units = alone.chain(pairs).chain(hidden.map(str::to_owned));
    let mut costly: Vec<(f64, String)> = units.map(a_byte).collect();
    costly.retain(|(steps, _)| *steps > MICROSECOND);

    costly.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    assert_none(&costly, "units take more steps a byte");
}

#[test]
fn a_text_beyond_its_steps_is_refused() {
    let costly = "password=x1y2 ".repeat(20);
    let exceeded = Meter::new(pace::without_rest, 1);

    assert!(!exceeded.spend(1 << 20));
    assert_eq!(exceeded.exceeded(), Some(1));
    assert!(engine().scan(&json!(costly), &key()).is_ok());
}

#[test]
fn names_and_values_on_one_line_cost_by_their_length() {
    // Those of instructions stand before no value; their steps are counted above.
    let names = engine().detectors().filter(|detector| {
        matches!(detector.shape, Shape::Value(_) | Shape::Around(_))
            && detector.category != Category::Injection
    });
    let literals = names.flat_map(Detector::wakes_at);
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

/// Numbers that several detectors turn down, and numbers that they find.
const NUMBERS: &str = "ssn 666121234 nhs 4505577105 card 5105105105105106 ";
const FOUND: &str = "ssn 536228726 iban DE89370400440532013000 card 5105105105105100 ";

#[test]
fn space_and_long_names_cost_by_their_length() {
    let space = |size: usize| " ".repeat(size / 2);
    let numbers = |size: usize| repeated(NUMBERS, size / 2);
    let forms: [(&str, Make<'_>); 6] = [
        ("before", &|size| json!({ "q": space(size) + &numbers(size) })),
        ("behind", &|size| json!({ "ssn": numbers(size) + &space(size) })),
        ("around", &|size| json!({ "ssn": "\n".repeat(size / 4) + &numbers(size) + &space(size) })),
        ("between", &|size| json!({ "ssn": repeated(&NUMBERS.replace(' ', "    "), size) })),
        ("texts", &|size| json!({ "ssn": vec![space(2048) + "666121234"; size / 1024] })),
        ("names", &|size| json!({ repeated("of it ", size / 2): repeated(FOUND, size / 2) })),
    ];
    for (form, make) in forms {
        let growth = growth(make);
        assert!(growth <= MOST, "{form}: {growth}");
    }
}

#[test]
fn a_description_is_read_once_and_its_sentences_are_counted() {
    let sentences = "@ all x abc\n".repeat(170);
    let described = |times: usize| {
        let text = "<system>\n".repeat(times) + &sentences;
        Value::from(vec![json!({ "description": text }); 20])
    };

    let cost = ratio(&described(113), &described(1), 4.0);
    let steps = engine().steps(&described(1)).unwrap();

    assert!(cost <= 4.0, "{cost}");
    assert!(steps >= 20 * 170 * pace::LOOK, "{steps}");
}

#[test]
fn cells_cost_alike_however_many_stand_in_a_row() {
    let table = |columns: usize, cell: &str| {
        let row = |cell: &str| vec![cell; columns].join(",") + "\n";
        json!(row("pw") + &row(cell).repeat(16_384 / columns))
    };

    for cell in ["", "a"] {
        let cost = ratio(&table(512, cell), &table(64, cell), 3.0);
        assert!(cost <= 3.0, "{cell}: {cost}");
    }
    let steps = |cell| engine().steps(&table(512, cell)).unwrap();
    assert!(steps("a") - steps("") >= 16_384 * pace::PEEK);
}
