//! Places where nothing else than a value can stand: a text that only gives a value to a name, and
//! lines of settings.
//!
//! `password: sunshine` may be a line of a program or of a sentence; all of a text, or below
//! `user: app`, it is neither.

use std::ops::Range;

/// Bytes of a line, and of what stands before it and behind it, that are looked at: there may be as many
/// names in a text as it has room for.
const LINE: usize = 160;

/// Returns true if a name and its value, with quotes around it or not, are all of a text or a line
/// of settings among others.
pub(super) fn is_setting(text: &[u8], name: &Range<usize>, value: &Range<usize>) -> bool {
    let (Some(before), Some(between), Some(after)) =
        (text.get(..name.start), text.get(name.end..value.start), text.get(value.end..))
    else {
        return false;
    };
    let lead = ending(before).rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let rest = beginning(after).split(|byte| *byte == b'\n').next().unwrap_or_default();
    // Longer lines are no settings.
    if lead.len() == LINE || rest.len() == LINE {
        return false;
    }
    if !is_lead(lead) || !is_rest(rest) || between.contains(&b'\n') {
        return false;
    }
    let above = before.get(..before.len() - lead.len()).unwrap_or_default();
    let below = after.get(rest.len()..).unwrap_or_default();
    if is_blank(above) && is_blank(below) {
        return true;
    }
    let above = ending(above);
    let below = beginning(below);
    let previous = last_line(above);
    let next = first_line(below);
    let is_program = between.contains(&b' ') && between.contains(&b'=');
    let is_quoted = between.last().is_some_and(|last| matches!(last, b'"' | b'\''));
    if is_program && !is_quoted && !previous.starts_with(b"[") {
        return false;
    }
    let kinds = [previous, next].map(kind);
    kinds.contains(&LineKind::Setting) && !kinds.contains(&LineKind::Other)
}

/// Kind of a line beside a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Empty, or a remark.
    Nothing,
    /// A name and its value, or the head of a section.
    Setting,
    Other,
}

/// Returns true if nothing stands before a name in its line but signs of a list, `export`, a quote or
/// another pair.
fn is_lead(lead: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_whitespace() || b"-*+\"'`".contains(byte);
    let lead = lead.trim_ascii();
    lead.iter().all(is_sign) || lead == b"export" || lead == b"set" || lead.ends_with(b",")
}

/// Returns true if nothing stands behind a value in its line but a quote or a remark.
fn is_rest(rest: &[u8]) -> bool {
    let is_quoted = rest.first().is_some_and(|first| matches!(first, b'"' | b'\'' | b'`'));
    let rest = rest.get(usize::from(is_quoted)..).unwrap_or_default();
    let rest = rest.trim_ascii();
    rest.is_empty() || rest.starts_with(b"#")
}

/// The end of a text, as far as it is looked at.
fn ending(text: &[u8]) -> &[u8] {
    text.get(text.len().saturating_sub(LINE)..).unwrap_or_default()
}

/// The beginning of a text, as far as it is looked at.
fn beginning(text: &[u8]) -> &[u8] {
    text.get(..text.len().min(LINE)).unwrap_or_default()
}

/// Returns true if a text is short and nothing but space.
fn is_blank(text: &[u8]) -> bool {
    text.len() <= LINE && text.trim_ascii().is_empty()
}

/// The last line of a text that ends with the end of one.
fn last_line(above: &[u8]) -> &[u8] {
    above.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

fn first_line(below: &[u8]) -> &[u8] {
    below.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

fn kind(line: &[u8]) -> LineKind {
    if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"```") || line == b"---" {
        return LineKind::Nothing;
    }
    if line.starts_with(b"[") && line.ends_with(b"]") {
        return LineKind::Setting;
    }
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-. \"'".contains(byte);
    let name = line.iter().take_while(|byte| is_name(byte)).count();
    let is_given = line.get(name).is_some_and(|sign| matches!(sign, b':' | b'='));
    let is_program = line.iter().any(|byte| b"(){};".contains(byte)) || line.ends_with(b",");
    if name > 0 && is_given && !is_program { LineKind::Setting } else { LineKind::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_at(text: &str) -> bool {
        let at = |part: &str| {
            let start = text.find(part).unwrap();
            start..start + part.len()
        };
        is_setting(text.as_bytes(), &at("password"), &at("sunshine"))
    }

    #[test]
    fn no_more_of_a_line_is_looked_at_than_settings_have() {
        let spaces = " ".repeat(LINE - 1);

        assert!(is_at(&format!("a: b\n{spaces}password: sunshine{spaces}\n")));
        assert!(!is_at(&format!("a: b\n {spaces}password: sunshine\n")));
        assert!(!is_at(&format!("a: b\npassword: sunshine {spaces}\n")));
        assert!(!is_at(&format!("So it goes on.\n{spaces}password: sunshine{spaces}\n")));
    }

    #[test]
    fn settings_are_told_from_programs_and_sentences() {
        for text in [
            "password: sunshine",
            "* password = sunshine\n",
            "user: ada, password: sunshine",
            "--password=sunshine",
            "\"password\" => \"sunshine\"",
            "users:\n- name: ada\n  password: sunshine\n",
            "[client]\nuser=root\npassword=sunshine\n",
            "[client]\npassword = sunshine",
            "  user = \"app\"\n  password = \"sunshine\"\n",
            "# settings\npassword=sunshine # here\nDEBUG=0",
        ] {
            assert!(is_at(text), "{text}");
        }
        for text in [
            "const password = sunshine",
            "  user = form\n  password = sunshine\n",
            "login({\n  user: ada,\n  password: sunshine\n})",
            "password: sunshine is here",
            "Read on.\npassword: sunshine\nand so on",
            "password\nsunshine",
        ] {
            assert!(!is_at(text), "{text}");
        }
    }
}
