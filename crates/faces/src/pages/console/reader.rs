//! Answers of uses as pages show them: text as text, pictures as pictures. Nothing of them is executed.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use portcullis_core::capability::CapabilityKind;
use serde_json::Value;

use super::json::Json;
use crate::pages::html::{Html, html};

/// Most bytes of a picture.
const MOST_BYTES: usize = 1 << 20;

type Look = fn(&[u8]) -> bool;

/// Media types of pictures, and the look of their bytes.
const PICTURES: [(&str, Look); 4] = [
    ("image/png", |it| it.starts_with(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", |it| it.starts_with(b"\xff\xd8\xff")),
    ("image/gif", |it| it.starts_with(b"GIF87a") || it.starts_with(b"GIF89a")),
    ("image/webp", |it| it.starts_with(b"RIFF") && it.get(8..12) == Some(b"WEBP")),
];

/// An answer as it is shown.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) html: Html,
    /// True if the policy of the page has to let `data:` pictures in.
    pub(super) has_pictures: bool,
}

impl Reading {
    /// The messages of a prompt, the contents of a resource, or whatever else there is as JSON.
    pub(super) fn of(kind: CapabilityKind, result: &Json) -> Self {
        let parts = match kind {
            CapabilityKind::Tool => Vec::new(),
            CapabilityKind::Prompt => result.items("/messages"),
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                result.items("/contents")
            }
        };
        if parts.is_empty() {
            return Self::text(&result.pretty(""));
        }
        let shown: Vec<Self> = parts.iter().flat_map(Self::of_part).collect();
        let has_pictures = shown.iter().any(|it| it.has_pictures);
        Self { html: shown.into_iter().map(|it| it.html).collect(), has_pictures }
    }

    /// A message with its role, or a content of a resource with its URI.
    fn of_part(part: &Json) -> Vec<Self> {
        let head = "<h3>{} <span class=\"faint\">{}</span></h3>";
        let (name, media_type) = (part.first(&["/role", "/uri"]), part.text("/mimeType"));
        let html = html(head, &[&name, &media_type]);
        let content = if part.has("/content") { part.at("/content") } else { part.clone() };
        let contents = if content.0.is_array() { content.items("") } else { vec![content] };
        let head = Self { html, has_pictures: false };
        [head].into_iter().chain(contents.iter().map(Self::of_content)).collect()
    }

    fn of_content(content: &Json) -> Self {
        let resource = content.at("/resource");
        let content = if resource.0.is_object() { &resource } else { content };
        let text = |name: &str| content.0.get(name).and_then(Value::as_str);
        if text("text").is_some() {
            return Self::text(&content.text("/text"));
        }
        let Some(blob) = text("blob").or_else(|| text("data")) else {
            return Self::text(&content.pretty(""));
        };
        if let Some(html) = picture(text("mimeType").unwrap_or_default(), blob) {
            return Self { html, has_pictures: true };
        }
        let about = "<p class=\"empty\">{} · {} bytes · not shown</p>";
        let size = size(blob).to_string();
        let html = html(about, &[&content.first(&["/mimeType", "/type"]), &size]);
        Self { html, has_pictures: false }
    }

    fn text(text: &str) -> Self {
        let html = html("<pre class=\"stranger\">{}</pre>", &[&text]);
        Self { html, has_pictures: false }
    }
}

/// Bytes of what is encoded.
fn size(blob: &str) -> usize {
    blob.trim_end_matches('=').len() * 3 / 4
}

/// A picture, if its bytes look like its type and are not too many.
fn picture(media_type: &str, blob: &str) -> Option<Html> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let (name, is_one) = PICTURES.iter().find(|(name, _)| name.eq_ignore_ascii_case(essence))?;
    if blob.len() > MOST_BYTES.div_ceil(3) * 4 {
        return None;
    }
    let bytes = BASE64_STANDARD.decode(blob).ok()?;
    let image = "<p><img class=\"picture\" alt=\"Picture\" src=\"data:{};base64,{}\"></p>";
    let fits = bytes.len() <= MOST_BYTES && is_one(&bytes);
    fits.then(|| html(image, &[name, &BASE64_STANDARD.encode(&bytes)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    #[test]
    fn a_picture_is_shown_only_if_its_bytes_are_those_of_its_type_and_few() {
        let large = [PNG, &vec![0; MOST_BYTES]].concat();
        for (media_type, bytes, is_shown) in [
            ("image/png", PNG, true),
            ("Image/PNG; a=b", PNG, true),
            ("image/jpeg", b"\xff\xd8\xff\xe0", true),
            ("image/gif", b"GIF89a", true),
            ("image/webp", b"RIFF\0\0\0\0WEBP", true),
            ("image/webp", b"RIFF\0\0\0\0WAVE", false),
            ("image/gif", PNG, false),
            ("image/png", b"<html><script>alert(1)</script>", false),
            ("image/png", &large[..=MOST_BYTES], false),
            ("image/png", &large[..MOST_BYTES], true),
            ("image/svg+xml", b"<svg onload='alert(1)'/>", false),
            ("text/html", b"<b>", false),
            ("", PNG, false),
        ] {
            let blob = BASE64_STANDARD.encode(bytes);
            let content = json!({"uri": "a:b", "mimeType": media_type, "blob": blob});

            let reading =
                Reading::of(CapabilityKind::Resource, &Json(json!({ "contents": [content] })));

            let html = reading.html.into_visible();
            assert_eq!(reading.has_pictures, is_shown, "{media_type}");
            assert_eq!(html.contains("<img"), is_shown, "{media_type}");
            let told = format!("{} bytes · not shown", bytes.len());
            assert_eq!(html.contains(&told), !is_shown, "{media_type}");
        }
        let broken = json!({"uri": "a:b", "mimeType": "image/png", "blob": "iVBORw0KGgo\"><b>"});
        let reading = Reading::of(CapabilityKind::Resource, &Json(json!({ "contents": [broken] })));
        assert!(!reading.has_pictures && !reading.html.into_visible().contains("<b>"));
    }
}
