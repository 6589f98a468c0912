//! SCIM 2.0 for identity providers: `/scim/v2`. It speaks its own words (RFC 7644), not the envelope.

pub(crate) mod discovery;
pub(crate) mod groups;
pub(crate) mod users;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header, uri::PathAndQuery},
    response::{IntoResponse, Response},
};
use portcullis_app::{ListedResources, ScimList, ScimResource};
use portcullis_core::{
    refusal::Refusal,
    scim::{Filter, LIST_SCHEMA, MAX_PAGE, ScimError, ScimProjection, ScimRejection},
};
use serde_json::{Value, json};

use crate::{
    exchange::{Outcome, Query, outcome::insert, precondition::is_known},
    gateway::Gateway,
};

/// Media type of all bodies.
pub(crate) const MEDIA_TYPE: &str = "application/scim+json";
/// Beginning of the paths of all resources.
const BELOW: &str = "/scim/v2/";
/// Parameters of lists. What is asked of the order is ignored (RFC 7644 §3.4.2.3).
const OF_LISTS: [&str; 7] =
    ["filter", "startIndex", "count", "attributes", "excludedAttributes", "sortBy", "sortOrder"];
/// Parameters of single resources.
const OF_ONE: [&str; 2] = ["attributes", "excludedAttributes"];
/// Resources on a page that names no number.
const DEFAULT_COUNT: u32 = 100;

/// A refusal of the gateway in the words of SCIM. Status and headers follow from the refusal.
pub(crate) fn error_body(refusal: &Refusal) -> Vec<u8> {
    ScimError::from(refusal).body().to_string().into_bytes()
}

/// The error of an operation as its answer.
pub(crate) struct Rejected(ScimRejection);

impl From<ScimRejection> for Rejected {
    fn from(rejection: ScimRejection) -> Self {
        Self(rejection)
    }
}

impl From<ScimError> for Rejected {
    fn from(error: ScimError) -> Self {
        Self(error.into())
    }
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.into())
    }
}

impl IntoResponse for Rejected {
    fn into_response(self) -> Response {
        match self.0 {
            ScimRejection::Gateway(refusal) => Outcome::from(refusal).into_response(),
            ScimRejection::Scim(error) => {
                let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
                answer(status, &error.body())
            }
        }
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// An answer without a body, with the version of what was changed.
fn no_content(version: Option<&str>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(version) = version {
        insert(response.headers_mut(), header::ETAG, &format!("\"{version}\""));
    }
    response
}

/// The address without the empty segments that clients leave in it who join its parts by a slash too many; `None` if
/// it has none, or is not below the SCIM server. Encoded slashes are none.
pub(crate) fn without_empty_segments(asked: &Uri) -> Option<Uri> {
    let segments = asked.path().strip_prefix(BELOW)?.split('/').filter(|part| !part.is_empty());
    let path = BELOW.to_owned() + &segments.collect::<Vec<_>>().join("/");
    if path == asked.path() {
        return None;
    }
    let query = asked.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = asked.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path + &query).ok()?);
    Uri::from_parts(parts).ok()
}

/// The address of the SCIM server; a path where the gateway has no public address.
fn base(gateway: &Gateway) -> String {
    format!("{}/scim/v2", gateway.app.providers.public_url().unwrap_or_default())
}

/// The parameters of a single resource.
fn projection(raw: Option<&str>) -> Result<ScimProjection, Rejected> {
    let query = Query::parse_known(raw, &OF_ONE)?;
    Ok(ScimProjection::parse(query.text("attributes"), query.text("excludedAttributes"))?)
}

/// The parameters of a list. A place before the first is the first, and a number below none is none.
fn list_of(raw: Option<&str>) -> Result<ScimList, Rejected> {
    let query = Query::parse_known(raw, &OF_LISTS)?;
    let start: Option<i64> = query.parsed("startIndex", "a number")?;
    let count: Option<i64> = query.parsed("count", "a number")?;
    let bounded = |value: i64, least: u32, most: u32| {
        u32::try_from(value.clamp(i64::from(least), i64::from(most))).unwrap_or(least)
    };
    Ok(ScimList {
        filter: query.text("filter").map(Filter::parse).transpose()?,
        start_index: bounded(start.unwrap_or(1), 1, i32::MAX.unsigned_abs()),
        count: bounded(count.unwrap_or(DEFAULT_COUNT.into()), 0, MAX_PAGE),
        projection: ScimProjection::parse(
            query.text("attributes"),
            query.text("excludedAttributes"),
        )?,
    })
}

/// The resource with its `meta` and the addresses of its members, as far as it is asked for.
fn show(resource: ScimResource, base: &str, projection: &ScimProjection) -> Value {
    let ScimResource { kind, id, mut members, created_at, changed_at, version } = resource;
    let of = members.get_mut("members").and_then(Value::as_array_mut);
    for member in of.into_iter().flatten().filter_map(Value::as_object_mut) {
        let user = member.get("value").and_then(Value::as_str).unwrap_or_default();
        let address = format!("{base}/Users/{user}");
        member.insert("$ref".to_owned(), Value::from(address));
    }
    let meta = json!({
        "resourceType": kind,
        "created": created_at,
        "lastModified": changed_at,
        "location": format!("{base}/{kind}s/{id}"),
        "version": format!("\"{version}\""),
    });
    members.insert("meta".to_owned(), meta);
    projection.apply(&mut members);
    Value::Object(members)
}

/// A resource with its version as `ETag`.
fn one(
    gateway: &Gateway,
    status: StatusCode,
    resource: ScimResource,
    projection: &ScimProjection,
) -> Response {
    let base = base(gateway);
    let location = format!("{base}/{}s/{}", resource.kind, resource.id);
    let etag = format!("\"{}\"", resource.version);
    let mut response = answer(status, &show(resource, &base, projection));
    insert(response.headers_mut(), header::ETAG, &etag);
    if status == StatusCode::CREATED {
        insert(response.headers_mut(), header::LOCATION, &location);
    }
    response
}

/// A resource, unless the client has this version of it.
fn one_unless_known(
    gateway: &Gateway,
    headers: &HeaderMap,
    resource: ScimResource,
    projection: &ScimProjection,
) -> Response {
    if is_known(headers, &format!("\"{}\"", resource.version)) {
        let mut response = no_content(Some(&resource.version));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    one(gateway, StatusCode::OK, resource, projection)
}

fn page(gateway: &Gateway, list: &ScimList, found: ListedResources) -> Response {
    let base = base(gateway);
    let items = found.items.into_iter().map(|it| show(it, &base, &list.projection));
    let items: Vec<Value> = items.collect();
    let body = listed(found.total, list.start_index, &items);
    answer(StatusCode::OK, &body)
}

/// The message of a list (RFC 7644 §3.4.2).
fn listed(total: u64, start_index: u32, items: &[Value]) -> Value {
    json!({
        "schemas": [LIST_SCHEMA],
        "totalResults": total,
        "startIndex": start_index,
        "itemsPerPage": items.len(),
        "Resources": items,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded() {
        let read = |raw: &str| list_of(Some(raw)).ok().map(|list| (list.start_index, list.count));

        assert_eq!(read(""), Some((1, 100)));
        assert_eq!(read("startIndex=0&count=-3"), Some((1, 0)));
        assert_eq!(read("startIndex=-9&count=5000"), Some((1, 200)));
        assert_eq!(read("startIndex=9223372036854775807&count=0"), Some((2_147_483_647, 0)));
        assert_eq!(read("startIndex=x"), None);
        assert_eq!(read("startindex=7&count=&aadOptscim062020"), Some((1, 100)));
        assert_eq!(read("filter=userName%20co%20%22a%22"), None);
    }

    #[test]
    fn only_slashes_too_many_are_taken_from_an_address_and_only_below_scim() {
        for (asked, within) in [
            ("/scim/v2/Users/?filter=a%2F/", Some("/scim/v2/Users?filter=a%2F/")),
            ("/scim/v2//Users", Some("/scim/v2/Users")),
            ("/scim/v2/Users//usr_1/", Some("/scim/v2/Users/usr_1")),
            ("https://gw.example/scim/v2//Users", Some("https://gw.example/scim/v2/Users")),
            ("/scim/v2/Users", None),
            ("/scim/v2/", None),
            ("/scim/v2/Users%2F", None),
            ("/scim/v2/%2e%2e/Users", None),
            ("//scim/v2/Users/", None),
            ("/scim//v2/Users", None),
            ("/SCIM/v2/Users/", None),
            ("/v1//principals", None),
            ("/scim/v2/..//v1/tokens", Some("/scim/v2/../v1/tokens")),
        ] {
            let found = without_empty_segments(&asked.parse().unwrap());
            assert_eq!(found.map(|it| it.to_string()).as_deref(), within, "{asked}");
        }
    }
}
