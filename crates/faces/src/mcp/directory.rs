//! `resources/directory/read`: files and folders of skills, as their accepted manifests tell them. The provider is not asked.

use std::sync::Arc;

use portcullis_app::{Ctx, DirectoryEntry};
use portcullis_core::{
    json::{JsonValue as _, Kind, Node},
    mcp::{ProtocolError, Request as Asking, skills, uris},
};
use serde_json::{Value, json};

use super::{Face, call::inner_of, reply};
use crate::{exchange::Outcome, gateway::Gateway};

/// The entries of the folder that is asked for, on one page.
pub(super) async fn read(
    gateway: &Arc<Gateway>,
    ctx: &Ctx,
    face: &Face,
    asking: &Asking,
) -> Result<Outcome, Outcome> {
    let params = asking.params.root();
    let uri = params.get("uri").and_then(Node::text);
    let uri = uri.ok_or_else(|| ProtocolError::bad_params("`uri` has to be a text."))?;
    if params.get("cursor").is_some_and(|it| !matches!(it.kind(), Kind::Null | Kind::Text(""))) {
        return Err(ProtocolError::bad_params("`cursor` is of no page: a folder has one.").into());
    }
    let no_folder = || ProtocolError {
        http_status: 200,
        data: Some(json!({ "uri": uri })),
        ..ProtocolError::bad_params("There is no folder of a skill at this URI.")
    };
    let (slug, inner) = inner_of(face, uri).ok_or_else(no_folder)?;
    let entries = gateway.app.tools.directory(ctx, &slug, &inner).await?;
    if entries.is_empty() {
        return Err(no_folder().into());
    }
    let named = |inner: &str| match face {
        Face::All(_) => uris::outer(&slug, inner),
        Face::One(_) => inner.to_owned(),
    };
    let resources: Value =
        entries.iter().map(|entry| resource(entry, &named(&entry.uri))).collect();
    let result =
        json!({ "resources": resources, "ttlMs": gateway.mcp.ttl_ms, "cacheScope": "private" });
    Ok(reply::result(result, asking.era))
}

fn resource(entry: &DirectoryEntry, uri: &str) -> Value {
    let name = entry.uri.rsplit('/').next().unwrap_or_default();
    match entry.size {
        Some(size) => json!({ "uri": uri, "name": name, "size": size }),
        None => json!({ "uri": uri, "name": name, "mimeType": skills::DIRECTORY }),
    }
}
