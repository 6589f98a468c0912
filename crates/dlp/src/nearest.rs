//! Names like one that is not known.

/// Characters of a name that is compared; a longer one is like nothing.
const MAX_CHARS: usize = 64;
/// Names that it is compared with.
const MAX_NAMES: usize = 2_000;
/// Names that are told.
const SHOWN: usize = 3;

/// Returns the nearest of the known names as an addition to an error, such as `` (did you mean `email`?)``.
/// Empty if none is like it.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let length = name.chars().count();
    if length > MAX_CHARS {
        return String::new();
    }
    let near = (length / 3).max(1);
    let rank = |known: &'a str| {
        let distance = strsim::osa_distance(name, known);
        let is_part = length > 3 && known.contains(name);
        (distance <= near || is_part).then(|| (distance.min(near + 1), known))
    };
    let known = known.into_iter().take(MAX_NAMES).filter(|known| known.len() <= 2 * MAX_CHARS);
    let mut found: Vec<(usize, &str)> = known.filter_map(rank).collect();
    found.sort_unstable();
    found.dedup();
    let shown: Vec<String> = found.iter().take(SHOWN).map(|(_, it)| format!("`{it}`")).collect();
    if shown.is_empty() {
        String::new()
    } else {
        format!(" (did you mean {}?)", shown.join(" or "))
    }
}

/// Error about a name that is none of a detector's.
pub(crate) fn unknown_detector(name: &str, known: &[&str]) -> String {
    let nearest = did_you_mean(name, known.iter().copied());
    format!(
        "there is no detector `{name}`{nearest}; `portcullis dlp detectors` lists those built in"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_three_names_are_told() {
        let names = [
            "email", "iban", "ipv4", "us_passport", "us_ssn", "uk_passport", "passport_mrz", "slug",
        ];
        for (name, told) in [
            ("emial", " (did you mean `email`?)"),
            ("slugg", " (did you mean `slug`?)"),
            ("passport", " (did you mean `passport_mrz` or `uk_passport` or `us_passport`?)"),
            ("nothing_like_it", ""),
            ("", ""),
            (&"e".repeat(65), ""),
        ] {
            assert_eq!(did_you_mean(name, names), told, "{name}");
        }
    }
}
