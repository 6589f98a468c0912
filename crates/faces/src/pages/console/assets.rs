//! Style sheet, script and icon of the console, which are part of the program.

use std::sync::{Arc, LazyLock};

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    exchange::{Segment, segment},
    gateway::Gateway,
};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Names, types and contents.
const ASSETS: [(&str, &str, &str); 7] = [
    ("console.css", CSS, include_str!("../../../assets/console.css")),
    ("console.js", SCRIPT, include_str!("../../../assets/console.js")),
    ("proof.js", SCRIPT, include_str!("../../../assets/proof.js")),
    ("workbench.js", SCRIPT, include_str!("../../../assets/workbench.js")),
    ("log.js", SCRIPT, include_str!("../../../assets/log.js")),
    ("try.js", SCRIPT, include_str!("../../../assets/try.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../../assets/icon.svg")),
];

/// Versions by content: an address with one always answers the same.
static STYLE_VERSION: LazyLock<String> = LazyLock::new(|| version(CSS));
static SCRIPT_VERSION: LazyLock<String> = LazyLock::new(|| version(SCRIPT));

pub(super) fn style_version() -> &'static str {
    &STYLE_VERSION
}

pub(super) fn script_version() -> &'static str {
    &SCRIPT_VERSION
}

/// The version of everything of a type.
fn version(kind: &str) -> String {
    let texts = ASSETS.iter().filter(|asset| asset.1 == kind);
    let text: String = texts.map(|(_, _, text)| *text).collect();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    URL_SAFE_NO_PAD.encode(digest).chars().take(12).collect()
}

/// A part of the pages that is the same for everybody.
#[utoipa::path(
    get, path = "/console/assets/{name}", tag = "console", operation_id = "console_asset",
    params(("name" = String, Path, description = "`console.css`, `console.js`, `log.js`, `proof.js`, `try.js`, `workbench.js` or `icon.svg`")),
    responses(
        (status = 200, description = "style sheet, script or icon", content_type = "text/css"),
        (status = 404, description = "no such part", content_type = "text/plain"),
    )
)]
pub(crate) async fn show(State(_): State<Arc<Gateway>>, path: Segment) -> Response {
    let name = segment(path);
    let Some((_, kind, text)) = ASSETS.into_iter().find(|asset| asset.0 == name) else {
        let text = "There is no such part of the console.";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}
