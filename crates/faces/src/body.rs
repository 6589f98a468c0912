//! Reading a JSON body: declared, bounded in size and time, parsed strictly.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderMap, HeaderValue, header},
};
use bytes::Bytes;
use hyper::body::Body as _;
use portcullis_app::{App, Ctx, Screened};
use portcullis_core::{
    id::OrgId,
    json::{Bounds, Document},
    refusal::{Refusal, Violation},
    scim::{ScimError, ScimRejection},
};
use serde_json::{Map, Value};

use super::{
    Gateway,
    exchange::Exchange,
    known::{OrgBudget, whole},
    outcome::Outcome,
    strangers::SourceBudget,
};

/// The longest that the body of a sender of whom nothing is known may take to arrive: others wait for the room
/// that it takes.
const STRANGERS_TIME: Duration = Duration::from_secs(5);

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// Bounds on an object of SCIM: a group of all the members that it may have, as it was read.
const GROUP: Bounds = Bounds { nodes: 200_000, ..Bounds::REQUEST };

/// Bounds on a body: its size and the time that it may take to arrive.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    bytes: usize,
    time: Duration,
}

/// Budget that a body is charged to while it is kept.
#[derive(Debug)]
enum Budget {
    /// Nothing is known of its sender.
    Source(SourceBudget),
    /// It is known whose plan pays.
    Org(OrgBudget),
    /// It is empty, or written by the gateway.
    Free,
}

/// The body of a request before it is read, with what its route allows.
///
/// **Invariant:** nothing else reads bodies, and one of a sender of whom nothing is known is read
/// within the budget, whatever its route.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pub(crate) headers: HeaderMap,
    body: Body,
    allowance: Allowance,
    budget: Budget,
}

impl FromRequest<Arc<Gateway>> for RequestBody {
    type Rejection = Outcome;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Outcome> {
        let (parts, body) = request.into_parts();
        let exchange = Arc::clone(Exchange::of(&parts)?);
        Ok(Self::of(&exchange, parts.headers, body, gateway))
    }
}

impl RequestBody {
    /// The body of a request, once its headers were looked at for who sends it.
    pub(crate) fn of(
        exchange: &Exchange,
        headers: HeaderMap,
        body: Body,
        gateway: &Gateway,
    ) -> Self {
        let allowance = Allowance { bytes: exchange.route.body, time: gateway.body_time };
        let budget = if body.is_end_stream() {
            Budget::Free
        } else if let Some(org) = exchange.org() {
            Budget::Org(gateway.known.of(org))
        } else {
            Budget::Source(gateway.strangers.of(exchange.origin.source_ip))
        };
        Self { headers, body, allowance, budget }
    }

    /// A body that the gateway writes itself.
    pub(crate) fn written(headers: HeaderMap, bytes: Vec<u8>, gateway: &Gateway) -> Self {
        let allowance = Allowance { bytes: bytes.len(), time: gateway.body_time };
        Self { headers, body: Body::from(bytes), allowance, budget: Budget::Free }
    }

    /// The body beside a credential that was looked at.
    pub(crate) fn screened(self, screened: Screened, gateway: &Gateway) -> Self {
        match screened {
            Screened::Known(org) => Self { budget: Budget::Org(gateway.known.of(org)), ..self },
            Screened::Unknown => self,
        }
    }

    /// Reads a JSON object of an org and makes something of it. A large one does not keep the
    /// thread that serves.
    pub(crate) async fn object<T: Send + 'static>(
        self,
        app: &App,
        org: OrgId,
        make: impl FnOnce(Map<String, Value>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.object_within(Bounds::REQUEST, app, org, make).await
    }

    async fn object_within<T: Send + 'static>(
        self,
        bounds: Bounds,
        app: &App,
        org: OrgId,
        make: impl FnOnce(Map<String, Value>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let bytes = self.read().await?;
        let size = bytes.len();
        let work = move || make(members_of(&document_within(bounds, &bytes)?));
        app.base.worked(org, size, work).await?
    }

    /// Reads a JSON object; an empty body is an object without members.
    pub(crate) async fn optional_object(self) -> Result<Map<String, Value>, Refusal> {
        members(&self.read().await?)
    }

    /// Reads a merge patch (RFC 7396), declared as `application/merge-patch+json` or as JSON.
    pub(crate) async fn merge_patch(mut self) -> Result<Map<String, Value>, Refusal> {
        let declared = self.headers.get(header::CONTENT_TYPE);
        let declared = declared.and_then(|it| it.to_str().ok()).unwrap_or_default();
        if declared.trim().eq_ignore_ascii_case("application/merge-patch+json") {
            self.headers.remove(header::CONTENT_TYPE);
        }
        parsed(&self.read().await?)
    }

    /// Reads an object of SCIM, declared as `application/scim+json` or as JSON.
    pub(crate) async fn scim_object<T: Send + 'static>(
        mut self,
        app: &App,
        ctx: &Ctx,
        parse: fn(&Map<String, Value>) -> Result<T, ScimError>,
    ) -> Result<T, ScimRejection> {
        let declared = self.headers.get(header::CONTENT_TYPE);
        let declared = declared.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let kind = declared.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/scim+json") {
            let json = declared.replacen(kind, "application/json", 1);
            match HeaderValue::from_str(&json) {
                Ok(json) => self.headers.insert(header::CONTENT_TYPE, json),
                Err(_) => self.headers.remove(header::CONTENT_TYPE),
            };
        }
        let make = move |body: Map<String, Value>| Ok(parse(&body));
        Ok(self.object_within(GROUP, app, ctx.caller().org_id, make).await??)
    }

    /// Reads what is declared to be JSON.
    pub(crate) async fn read(self) -> Result<Bytes, Refusal> {
        self.read_beside_headers().await.1
    }

    /// Reads what is declared to be the form of a page.
    pub(crate) async fn read_form(self) -> Result<Bytes, Refusal> {
        is_form(&self.headers)?;
        self.timely().await.1
    }

    /// The same as [`Self::read`], and the headers that came with it.
    pub(crate) async fn read_beside_headers(self) -> (HeaderMap, Result<Bytes, Refusal>) {
        match is_json(&self.headers) {
            Ok(()) => self.timely().await,
            Err(refusal) => (self.headers, Err(refusal)),
        }
    }

    /// Reads what is not declared to be too large, as long as it may take.
    async fn timely(self) -> (HeaderMap, Result<Bytes, Refusal>) {
        let Self { headers, body, allowance: Allowance { bytes: limit, time }, budget } = self;
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if declared.and_then(|text| text.parse().ok()).is_some_and(|length: usize| length > limit) {
            return (headers, Err(Refusal::PayloadTooLarge { limit_bytes: limit }));
        }
        let time = match budget {
            Budget::Source(_) => time.min(STRANGERS_TIME),
            Budget::Org(_) | Budget::Free => time,
        };
        let reading = async {
            match budget {
                Budget::Source(budget) => budget.read(body, limit).await,
                Budget::Org(budget) => whole(body, limit, Some(&budget)).await,
                Budget::Free => whole(body, limit, None).await,
            }
        };
        let read = tokio::time::timeout(time, reading).await.unwrap_or_else(|_| {
            let message = format!("The body did not arrive within {} seconds.", time.as_secs());
            Err(Refusal::bad_request(message))
        });
        (headers, read)
    }
}

/// The JSON object that was read; nothing is an object without members.
fn members(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if bytes.is_empty() { Ok(Map::new()) } else { parsed(bytes) }
}

/// The JSON object that was read.
pub(crate) fn parsed(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    Ok(members_of(&document(bytes)?))
}

fn members_of(document: &Document) -> Map<String, Value> {
    let members = document.root().members().into_iter().flatten();
    members.map(|(name, member)| (name.to_owned(), member.to_value())).collect()
}

/// The JSON object that was read, as it came.
pub(crate) fn document(bytes: &[u8]) -> Result<Document, Refusal> {
    document_within(Bounds::REQUEST, bytes)
}

fn document_within(bounds: Bounds, bytes: &[u8]) -> Result<Document, Refusal> {
    let document = Document::parse(bytes, bounds)
        .map_err(|error| Refusal::bad_request(format!("The body is refused: {error}.")))?;
    if !document.root().is_object() {
        return Err(Refusal::bad_request("The body has to be a JSON object."));
    }
    Ok(document)
}

/// A member that is wrong, and what is.
pub(crate) fn wrong_member(name: &str, problem: &str) -> Refusal {
    let violation =
        Violation { path: format!("/{name}"), keyword: None, message: problem.to_owned() };
    Refusal::InvalidRequest {
        message: format!("The member `{name}` {problem}."),
        parameter: None,
        violations: vec![violation],
    }
}

/// The text in a member of at most `longest` bytes; `None` if it is absent or `null`.
pub(crate) fn text(
    members: &mut Map<String, Value>,
    name: &str,
    longest: usize,
) -> Result<Option<String>, Refusal> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= longest => Ok(Some(text)),
        Some(Value::String(_)) => Err(wrong_member(name, &format!("may be {longest} bytes long"))),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(wrong_member(name, "has to be a text"))
        }
    }
}

/// Refuses members that are not among `known`: a mistyped one must not be ignored.
pub(crate) fn only(members: &Map<String, Value>, known: &[&str]) -> Result<(), Refusal> {
    only_named(members.keys().map(String::as_str), known)
}

/// The same, of the names of the members.
pub(crate) fn only_named<'a>(
    names: impl Iterator<Item = &'a str>,
    known: &[&str],
) -> Result<(), Refusal> {
    let unknown = names.filter(|name| !known.contains(name));
    let violations: Vec<Violation> = unknown
        .take(20)
        .map(|name| Violation {
            path: shown_name(name).map(pointer).unwrap_or_default(),
            keyword: None,
            message: "is not a member of this request".to_owned(),
        })
        .collect();
    if violations.is_empty() {
        return Ok(());
    }
    let message = if known.is_empty() {
        "The body has to be empty.".to_owned()
    } else {
        format!("The body may hold {} only.", known.join(", "))
    };
    Err(Refusal::InvalidRequest { message, parameter: None, violations })
}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A name that was mistyped and so can be told. What has digits or is long is none: the client may
/// have put it in the wrong place, such as a token or an address.
pub(crate) fn shown_name(name: &str) -> Option<&str> {
    const LONGEST: usize = 32;
    let is_part = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_digit() && byte != b'@';
    (name.len() <= LONGEST && name.bytes().all(is_part)).then_some(name)
}

/// Refuses what is not declared to be a form, and a content coding.
fn is_form(headers: &HeaderMap) -> Result<(), Refusal> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = declared.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case(FORM) && !headers.contains_key(header::CONTENT_ENCODING) {
        Ok(())
    } else {
        Err(Refusal::UnsupportedMediaType { wanted: FORM })
    }
}

/// An absent type is taken for JSON; a body with a content coding is refused unread, for what it
/// unpacks to has no bound.
fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::UnsupportedMediaType { wanted: JSON });
    }
    let Some(declared) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let declared = declared.to_str().unwrap_or_default();
    let mut parts = declared.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(JSON));
    let utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        Some(_) | None => true,
    });
    if json && utf8 { Ok(()) } else { Err(Refusal::UnsupportedMediaType { wanted: JSON }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(kind: &str) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        is_json(&headers)
    }

    #[test]
    fn json_in_utf8_is_the_only_media_type() {
        assert!(is_json(&HeaderMap::new()).is_ok());
        assert!(declared("application/json").is_ok());
        assert!(declared("Application/JSON; charset=UTF-8").is_ok());
        for kind in ["text/plain", "application/json; charset=utf-16", "application/jsonx", ""] {
            assert_eq!(
                declared(kind),
                Err(Refusal::UnsupportedMediaType { wanted: JSON }),
                "{kind}"
            );
        }
    }

    #[test]
    fn an_unknown_member_is_named() {
        let members = Map::from_iter([("in/put".to_owned(), Value::Null)]);

        let refusal = only(&members, &["input"]).unwrap_err();

        assert!(refusal.details()["violations"][0]["path"] == "/in~1put", "{refusal:?}");
    }
}
