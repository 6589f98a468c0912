//! Values that go on in the next member, line or row.

use super::{
    spellings::{ALPHANUMERIC, Numbers, ROUNDS, cut, is_found, secrets, share},
    *,
};

#[test]
fn numbered_members_are_read_as_one() {
    let split = |names: [&'static str; 3]| {
        share(move |text, numbers| {
            let (head, tail) = cut(text, numbers);
            let (middle, tail) = tail.split_at(tail.len() / 2);
            json!({ "x": { names[0]: head, names[1]: middle, "note": "none", names[2]: tail } })
        })
    };
    for names in [["part1", "part2", "part3"], ["9", "10", "11"], ["k_09", "k_10", "k_11"]] {
        let (found, tried) = split(names);
        assert!(found * 100 >= tried * 97, "{names:?}: {found} of {tried}");
    }
}

/// A secret in three pieces, the first of which holds more than its mark.
fn in_pieces<'a>(text: &'a str, numbers: &mut Numbers) -> [&'a str; 3] {
    const LEAST: usize = 4;
    let mark = text.rfind(['_', '-']).map_or(LEAST, |joint| joint + 1);
    let first = mark + 1 + numbers.below(text.len() - mark - 2 * LEAST - 1);
    let second = first + LEAST + numbers.below(text.len() - first - 2 * LEAST + 1);
    [&text[..first], &text[first..second], &text[second..]]
}

#[test]
fn tokens_that_go_on_in_the_next_line_or_member_are_read_as_one() {
    type Split = fn([&str; 3]) -> Value;
    let splits: [Split; 5] = [
        |[a, b, c]| json!({ "x": { "a": a, "b": b, "c": c } }),
        |[a, b, c]| json!({ "x": { "first": a, "second": b, "third": c, "zebra": "of no kind" } }),
        |[a, b, c]| json!({ "text": format!("{a}\n{b}\n{c}") }),
        |[a, b, c]| json!({ "text": format!("token: {a}\r\n    {b}\r\n    {c}\r\nand so on") }),
        |[a, b, c]| json!({ "text": format!("{a}\n{b}{c}\n") }),
    ];
    for (at, split) in splits.iter().enumerate() {
        let (found, tried) = share(|text, numbers| split(in_pieces(text, numbers)));
        assert!(found == tried, "{at}: {found} of {tried}");
    }
}

#[test]
fn what_follows_a_whole_token_is_no_part_of_it() {
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    for _ in 0..ROUNDS {
        for secret in secrets(&mut numbers) {
            let word = numbers.of(ALPHANUMERIC, 12);
            let members = json!({ "a": secret, "b": word, "c": "zebra" });
            assert!(places(&members).iter().all(|place| place.ends_with(" /a")), "{members}");
            let lines = json!(format!("{secret}\n{word}\n{word}\n"));
            let found = scan(&lines);
            let ranges: Vec<_> = found.iter().flat_map(Finding::ranges).collect();
            assert_eq!((ranges.len(), &ranges[0]), (1, &(0..secret.len())), "{lines}");
        }
        let mark = json!({ "prefix": "glpat-", "name": numbers.of(ALPHANUMERIC, 24) });
        assert!(!is_found(&mark), "{mark}");
    }
}
