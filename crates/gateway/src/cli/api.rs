//! The API that a command asks: that of a gateway elsewhere, or that of the installation, within this process.
//!
//! A command is a request and what is shown of its answer, wherever it goes.

use std::{cell::Cell, iter, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, header},
};
use clap::{Args, ValueEnum};
use portcullis_app::App;
use portcullis_core::id::{OrgId, PrincipalId};
use portcullis_faces::OperatorApi;
use portcullis_store::StoreError;
use portcullis_upstream::{ApiAnswer, with_query};
use serde_json::{Map, Value, json};

use super::{
    installation::{Installation, with_node_of},
    output::{Failure, visible},
    remote::{RemoteGateway, member, unreadable},
};
use crate::{boot::OfflineNode, config::Config};

/// Items asked for at once, and pages that are read of a list.
const PAGE: &str = "200";
const MAX_PAGES: usize = 1_000;
/// The largest answer.
const MAX_BYTES: usize = 16 << 20;

const NO_ORG: &str = "there is no org yet; `portcullis org create` makes one";

/// Options of a command about one org.
#[derive(Clone, Args)]
pub(super) struct OfOrg {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    pub(super) org: Option<String>,
    #[command(flatten)]
    pub(super) installation: Installation,
}

/// Option of a list that is searched.
#[derive(Args)]
pub(super) struct Search {
    /// Only those in whose names, addresses or labels a word begins so, in any case
    #[arg(long = "search", value_name = "TEXT", value_parser = short)]
    text: Option<String>,
}

impl Search {
    /// As a parameter of the API, if there is one.
    pub(super) fn parameter(&self) -> Option<(&'static str, &str)> {
        Some(("q", self.text.as_deref()?))
    }
}

/// A text as the API takes it in a search.
fn short(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.chars().count() <= 64;
    if fits { Ok(text.to_owned()) } else { Err("it has to be 1 to 64 characters long") }
}

/// A record as commands show it.
pub(super) struct Shape {
    /// Members of an answer that are shown, each by its name or as `name=/place/in/the/answer`; all if none is named.
    pub(super) members: &'static [&'static str],
    /// Members in a table.
    pub(super) columns: &'static [&'static str],
    /// Adds what follows from the answer.
    pub(super) add: fn(&mut Map<String, Value>),
}

impl OfOrg {
    /// Asks the API about the org.
    pub(super) async fn ask<T>(
        &self,
        act: impl AsyncFnOnce(&Api<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.installation.ask(Orgs::One(self.org.as_deref()), act).await
    }

    /// Asks the API about the org, and prints what comes of it: as JSON, or as `told` says it.
    pub(super) async fn show(
        &self,
        act: impl AsyncFnOnce(&Api<'_>) -> Result<Value, Failure>,
        told: impl FnOnce(&Value) -> String,
    ) -> Result<(), Failure> {
        let record = self.ask(act).await?;
        self.installation.output().record(&record, &told(&record))
    }

    /// Prints the list at a path.
    pub(super) async fn list(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        shape: &Shape,
    ) -> Result<(), Failure> {
        let list =
            async |api: &Api<'_>| api.records(api.list(path, parameters).await?, shape).await;
        let records = self.ask(list).await?;
        self.installation.output().table(&records, shape.columns)
    }
}

/// Orgs that a command is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Orgs<'a> {
    /// The one that is named, or the only one there is.
    One(Option<&'a str>),
    /// The one that is named, or whichever has what is asked for.
    Any(Option<&'a str>),
    /// One org as in `One`, for commands that read the log: what is committed is sealed before.
    Log(Option<&'a str>),
    /// The installation: an org that is about to be made, and every one that there is.
    Installation,
}

impl Installation {
    /// The gateway to work on over its API, if one is named.
    pub(super) async fn gateway(&self, org: Option<&str>) -> Result<Option<Api<'static>>, Failure> {
        match self.gateway_address() {
            Some(url) => Ok(Some(Api::Remote(self.remote.gateway(&url, org).await?))),
            None => Ok(None),
        }
    }

    /// Asks the API of the gateway that is named, otherwise that of the installation as its operator.
    pub(super) async fn ask<T>(
        &self,
        orgs: Orgs<'_>,
        act: impl AsyncFnOnce(&Api<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let named = match orgs {
            Orgs::One(named) | Orgs::Any(named) | Orgs::Log(named) => named,
            Orgs::Installation => None,
        };
        match self.gateway(named).await? {
            Some(api) => act(&api).await,
            None => self.operate(orgs, act).await,
        }
    }

    /// Asks the API of the installation for what no token may. Fails if a gateway is named.
    pub(super) async fn operate<T>(
        &self,
        orgs: Orgs<'_>,
        act: impl AsyncFnOnce(&Api<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        operate_on(&self.config()?, orgs, act).await
    }
}

/// Asks the API of the installation of this configuration as its operator.
pub(super) async fn operate_on<T>(
    config: &Config,
    orgs: Orgs<'_>,
    act: impl AsyncFnOnce(&Api<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with_node_of(config, async |node| ask_operator(config, node, orgs, act).await).await
}

/// Asks the API of an installation as its operator.
pub(super) async fn ask_operator<T>(
    config: &Config,
    node: &OfflineNode,
    orgs: Orgs<'_>,
    act: impl AsyncFnOnce(&Api<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    act(&Api::Own(OwnApi::open(config, node, orgs).await?)).await
}

/// The API that a command asks.
pub(super) enum Api<'a> {
    Remote(RemoteGateway),
    Own(OwnApi<'a>),
}

/// The API of the installation, without a listener.
pub(super) struct OwnApi<'a> {
    pub(super) config: &'a Config,
    pub(super) node: &'a OfflineNode,
    app: Arc<App>,
    api: OperatorApi,
    orgs: Vec<OrgId>,
    /// Position of the org that is asked first: the one that knew of what was asked for last.
    first: Cell<usize>,
}

impl<'a> OwnApi<'a> {
    async fn open(
        config: &'a Config,
        node: &'a OfflineNode,
        orgs: Orgs<'_>,
    ) -> Result<Self, Failure> {
        let identity = match orgs {
            Orgs::One(_) | Orgs::Any(_) | Orgs::Installation => None,
            Orgs::Log(_) => Some(node.log_identity(config).await?),
        };
        let operator = &node.operator;
        let found = match orgs {
            Orgs::One(named) | Orgs::Log(named) => vec![operator.org_or_only(named).await?],
            Orgs::Any(Some(named)) => vec![operator.org(named).await?],
            Orgs::Any(None) | Orgs::Installation => operator.store.list_orgs().await?,
        };
        let new = matches!(orgs, Orgs::Installation).then(|| OrgId::new(operator.ids()));
        let orgs = new.into_iter().chain(found.iter().map(|org| org.id)).collect();
        let (app, api) = node.api(config, identity)?;
        Ok(Self { config, node, app, api, orgs, first: Cell::new(0) })
    }

    /// The org that is asked first.
    pub(super) fn org(&self) -> Result<OrgId, Failure> {
        self.orgs.get(self.first.get()).copied().ok_or_else(|| NO_ORG.into())
    }

    /// Asks for each org in turn, until one knows of what is asked for. Fails if none does, and rows could not be read.
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiAnswer, Failure> {
        let first = self.first.get();
        let others = (0..self.orgs.len()).filter(|at| *at != first);
        let mut unknown = None;
        for at in iter::once(first).chain(others) {
            let Some(org) = self.orgs.get(at) else { continue };
            let answer = self.answer_of(*org, method, path, body).await?;
            if answer.status != 404 {
                self.first.set(at);
                return Ok(answer);
            }
            unknown.get_or_insert(answer);
        }
        match self.node.operator.store.take_unreadable().first() {
            Some(row) => Err(StoreError::Corrupt(row.table).into()),
            None => unknown.ok_or_else(|| NO_ORG.into()),
        }
    }

    async fn answer_of(
        &self,
        org: OrgId,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiAnswer, Failure> {
        let name = self.node.operator.os_user.clone();
        let session = self.app.access.operator_session(org, name).await;
        let session = session.map_err(|refusal| refusal.to_string())?;
        let request = Request::builder().method(method).uri(path);
        let request = match body {
            None => request.body(Body::empty())?,
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string()))?,
        };
        let response = self.api.ask(session, request).await;
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), MAX_BYTES).await?.to_vec();
        Ok(ApiAnswer { status, body })
    }
}

impl Api<'_> {
    /// `data` of the answer to a request.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut answer = self.answer(method, path, body).await?;
        Ok(answer.get_mut("data").map(Value::take).unwrap_or_default())
    }

    /// `data` of what is at a path.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, None).await
    }

    /// `data` of the answer to a body that is posted, without the members of it that are `null`.
    pub(super) async fn post(&self, path: &str, body: Value) -> Result<Value, Failure> {
        self.send(Method::POST, path, Some(&given(body))).await
    }

    /// `data` of the answer to what is deleted.
    pub(super) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::DELETE, path, None).await
    }

    /// One page of a list, with the position at which it goes on.
    pub(super) async fn page(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<(Vec<Value>, Option<String>), Failure> {
        let mut answer = self.answer(Method::GET, &with_query(path, parameters), None).await?;
        let cursor = answer.pointer("/meta/pagination/next_cursor").and_then(Value::as_str);
        let cursor = cursor.map(str::to_owned);
        match answer.pointer_mut("/data/items").map(Value::take) {
            Some(Value::Array(items)) => Ok((items, cursor)),
            Some(_) | None => Err("the answer of the gateway is no list".into()),
        }
    }

    /// All items of a list.
    pub(super) async fn list(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut asked = vec![("limit", PAGE)];
            asked.extend(parameters);
            asked.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let (items, next) = self.page(path, &asked).await?;
            all.extend(items);
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
        Err("the list of the gateway does not end".into())
    }

    /// The items of a list of each org that the command is about.
    pub(super) async fn list_of_each(&self, path: &str) -> Result<Vec<(OrgId, Value)>, Failure> {
        let mut all = Vec::new();
        for org in self.orgs().await? {
            self.begin_with(org);
            let items = self.list(path, &[]).await?;
            all.extend(items.into_iter().map(|item| (org, item)));
        }
        Ok(all)
    }

    /// The orgs that the command is about.
    pub(super) async fn orgs(&self) -> Result<Vec<OrgId>, Failure> {
        match self {
            Self::Remote(_) => Ok(vec![self.org_id().await?]),
            Self::Own(own) => Ok(own.orgs.clone()),
        }
    }

    /// Asks for this org first.
    pub(super) fn begin_with(&self, org: OrgId) {
        if let Self::Own(own) = self {
            let position = own.orgs.iter().position(|it| *it == org);
            own.first.set(position.unwrap_or_default());
        }
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let ApiAnswer { status, body } = match self {
            Self::Remote(gateway) => gateway.answer(method, path, body).await?,
            Self::Own(own) => own.answer(&method, path, body).await?,
        };
        let answer: Option<Value> = serde_json::from_slice(&body).ok();
        match answer {
            Some(answer) if (200..300).contains(&status) => Ok(answer),
            answer => {
                let answer = answer.unwrap_or_default();
                Err(match self {
                    Self::Remote(gateway) => gateway.refusal(status, &answer),
                    Self::Own(_) => {
                        let at = |place| answer.pointer(place).and_then(Value::as_str);
                        let told = at("/error/message").unwrap_or("the request failed");
                        let code = at("/error/code").unwrap_or_default();
                        visible(&format!("{told} ({code})")).into()
                    }
                })
            }
        }
    }

    /// Interval between two looks for something new; elsewhere each counts against the limit of requests.
    pub(super) const fn pace(&self) -> Duration {
        match self {
            Self::Remote(_) => Duration::from_secs(2),
            Self::Own(_) => Duration::from_millis(500),
        }
    }

    /// The org of the token, or the one that knew of what was asked for last.
    pub(super) async fn org_id(&self) -> Result<OrgId, Failure> {
        match self {
            Self::Remote(_) => {
                let org = self.get("/v1/org").await?;
                member(&org, "id")?.parse().map_err(|_| unreadable("id"))
            }
            Self::Own(own) => own.org(),
        }
    }

    /// The id of the principal that is named by its id or its name.
    pub(super) async fn principal(&self, named: &str) -> Result<PrincipalId, Failure> {
        match self {
            Self::Own(own) => {
                let org = match own.orgs.as_slice() {
                    [only] => Some(only.to_string()),
                    [] | [_, ..] => None,
                };
                let found = own.node.operator.principal_of(org.as_deref(), named).await?;
                self.begin_with(found.org_id);
                Ok(found.id)
            }
            Self::Remote(_) => {
                if let Ok(id) = named.parse() {
                    return Ok(id);
                }
                let all = self.list("/v1/principals", &[]).await?;
                let found = all.iter().find(|it| it.get("name") == Some(&json!(named)));
                let found = found.ok_or_else(|| {
                    format!("there is no principal `{}` in the org of the token", visible(named))
                })?;
                member(found, "id")?.parse().map_err(|_| unreadable("id"))
            }
        }
    }

    /// Records of answers.
    pub(super) async fn records(
        &self,
        answers: Vec<Value>,
        shape: &Shape,
    ) -> Result<Vec<Value>, Failure> {
        let has_org = shape.members.contains(&"org_id");
        let org = if has_org { Some(self.org_id().await?) } else { None };
        Ok(answers.into_iter().map(|answer| shape.of(answer, org)).collect())
    }

    /// The record of an answer.
    pub(super) async fn record(&self, answer: Value, shape: &Shape) -> Result<Value, Failure> {
        Ok(self.records(vec![answer], shape).await?.pop().unwrap_or_default())
    }
}

impl Shape {
    fn of(&self, mut answer: Value, org: Option<OrgId>) -> Value {
        if let Value::Object(members) = &mut answer {
            members.extend(org.map(|org| ("org_id".to_owned(), json!(org))));
            (self.add)(members);
        }
        if self.members.is_empty() {
            return answer;
        }
        let member = |shown: &&str| {
            let (name, place) = match shown.split_once('=') {
                Some((name, place)) => (name, place.to_owned()),
                None => (*shown, format!("/{shown}")),
            };
            (name.to_owned(), answer.pointer(&place).cloned().unwrap_or_default())
        };
        Value::Object(self.members.iter().map(member).collect())
    }
}

/// Adds the id of a person as its name where that is not known.
pub(super) fn name_person(members: &mut Map<String, Value>) {
    if members.get("principal_name").is_none_or(Value::is_null) {
        let id = members.get("principal_id").cloned().unwrap_or_default();
        members.insert("principal_name".to_owned(), id);
    }
}

/// The body of a request without the members that are `null`.
fn given(mut members: Value) -> Value {
    if let Value::Object(members) = &mut members {
        members.retain(|_, value| !value.is_null());
    }
    members
}

/// The text in a member of a record; empty where there is none.
pub(super) fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A value of an option as it is typed, which is how the API has it too.
pub(super) fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
}
