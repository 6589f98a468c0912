//! Tokens of chat, social and meeting services.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::text::{digits::DigitRun, window::Window};

/// In an id in base64 that two more parts follow, all three.
pub(crate) fn bot_token(text: &Window<'_>, id: Range<usize>) -> Option<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let decoded = STANDARD_NO_PAD.decode(text.get(id.clone())?).ok()?;
    let is_id = (17..=20).contains(&decoded.len()) && decoded.iter().all(u8::is_ascii_digit);
    let after = text.get(id.end..)?;
    let dots = after.first() == Some(&b'.') && after.get(7) == Some(&b'.');
    let time = after.get(1..)?.iter().take_while(is_part).count();
    let signature = after.get(8..)?.iter().take_while(is_part).count();
    let is_token = is_id && dots && time == 6 && (25..=40).contains(&signature);
    is_token.then_some(id.start..id.end + 8 + signature)
}

/// In the id of an app that `|` and a token follow, all of it.
pub(crate) fn app_token(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let Some(id) = run.groups.last().filter(|group| matches!(group.len(), 15 | 16)) else {
        return Vec::new();
    };
    let after = text.get(id.end..).unwrap_or_default();
    let found = || {
        let sign =
            [b"|".as_slice(), b"%7C", b"%7c", b"%"].into_iter().find(|s| after.starts_with(s))?;
        let length = after.get(sign.len()..)?.iter().take_while(is_part).count();
        (27..=40).contains(&length).then_some(id.start..id.end + sign.len() + length)
    };
    found().into_iter().collect()
}
