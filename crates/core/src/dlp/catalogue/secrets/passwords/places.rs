//! Places where nothing else than a value can stand: a text that only gives a value to a name, and
//! lines of settings.
//!
//! `password: sunshine` may be a line of a program or of a sentence; all of a text, or below
//! `user: app`, it is neither.

use std::ops::Range;

/// Bytes of a neighbouring line that are looked at.
const LINE: usize = 160;

/// Returns true if a name and its value, with quotes around it or not, are all of a text or a line
/// of settings among others.
pub(super) fn is_setting(text: &[u8], name: &Range<usize>, value: &Range<usize>) -> bool {
    let (Some(before), Some(between), Some(after)) =
        (text.get(..name.start), text.get(name.end..value.start), text.get(value.end..))
    else {
        return false;
    };
    let lead = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let rest = after.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !is_lead(lead) || !is_rest(rest) || between.contains(&b'\n') {
        return false;
    }
    let above = before.get(..before.len() - lead.len()).unwrap_or_default();
    let below = after.get(rest.len()..).unwrap_or_default();
    if above.trim_ascii().is_empty() && below.trim_ascii().is_empty() {
        return true;
    }
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

/// The last line of a text that ends with the end of one, as far as it is looked at.
fn last_line(above: &[u8]) -> &[u8] {
    let above = above.trim_ascii_end();
    let near = above.get(above.len().saturating_sub(LINE)..).unwrap_or_default();
    near.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

fn first_line(below: &[u8]) -> &[u8] {
    let below = below.trim_ascii_start();
    let near = below.get(..below.len().min(LINE)).unwrap_or_default();
    near.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
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
