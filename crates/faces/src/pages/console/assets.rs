//! Style sheet, script and icon of the console, which are part of the program.

use std::sync::{Arc, LazyLock};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    exchange::{Segment, segment},
    gateway::Gateway,
};

const STYLE: &str = include_str!("../../../assets/console.css");
const SCRIPT: &str = include_str!("../../../assets/console.js");
const PROOF: &str = include_str!("../../../assets/proof.js");
const WORKBENCH: &str = include_str!("../../../assets/workbench.js");
const TRY: &str = include_str!("../../../assets/try.js");
const LOG: &str = include_str!("../../../assets/log.js");
const ICON: &str = include_str!("../../../assets/icon.svg");

/// Versions by content: an address with one always answers the same.
static STYLE_VERSION: LazyLock<String> = LazyLock::new(|| version(STYLE));
static SCRIPT_VERSION: LazyLock<String> =
    LazyLock::new(|| version(&[SCRIPT, PROOF, WORKBENCH, LOG, TRY].concat()));

pub(super) fn style_version() -> &'static str {
    &STYLE_VERSION
}

pub(super) fn script_version() -> &'static str {
    &SCRIPT_VERSION
}

fn version(text: &str) -> String {
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
    let (kind, text) = match name.as_str() {
        "console.css" => ("text/css; charset=utf-8", STYLE),
        "console.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "proof.js" => ("text/javascript; charset=utf-8", PROOF),
        "workbench.js" => ("text/javascript; charset=utf-8", WORKBENCH),
        "try.js" => ("text/javascript; charset=utf-8", TRY),
        "log.js" => ("text/javascript; charset=utf-8", LOG),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => {
            let mut response = Response::new(Body::from("There is no such part of the console."));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
