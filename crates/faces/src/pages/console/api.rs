//! Operations of the API, as pages ask them.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use portcullis_core::principal::Scope;
use serde_json::Value;

use super::{json::Json, signed_in::Guest};
use crate::exchange::{Content, HandlerResult, NoQuery, Outcome, RequestBody, WithQuery};

/// The answer of an operation.
#[derive(Debug, Default)]
pub(super) struct ApiReply {
    pub(super) data: Json,
    /// Cursor at which a list goes on.
    pub(super) next: Option<String>,
    /// Decision about a call.
    pub(super) governance: Json,
}

impl ApiReply {
    /// The items of a list.
    pub(super) fn items(&self) -> Vec<Json> {
        self.data.items("/items")
    }
}

/// The error of an operation, in the words of the API.
#[derive(Debug, Default)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) details: Json,
    /// Decision about a call.
    pub(super) governance: Json,
}

impl Problem {
    /// The error of an operation that was refused.
    pub(super) fn of(refused: impl Into<Outcome>) -> Self {
        Self::or_reply(refused.into()).err().unwrap_or_default()
    }

    /// The answer of an operation, or its error.
    pub(super) fn or_reply(outcome: Outcome) -> Result<ApiReply, Self> {
        let governance = serde_json::to_value(&outcome.governance).unwrap_or_default();
        let governance = Json(governance);
        let executed = outcome.executed;
        let (data, next) = match outcome.content {
            Content::Data(data) | Content::Created(data) | Content::Begun(data) => (data, None),
            Content::Page(page) => (page.data, page.next_cursor),
            Content::Result(result) => (result.root().to_value(), None),
            // No operation of REST answers so.
            Content::Message(_) => (Value::Null, None),
            Content::Failed(failure) => {
                return Err(Self {
                    status: failure.http_status(),
                    code: failure.code().to_owned(),
                    message: failure.message(),
                    details: Json(Value::Object(failure.details(executed))),
                    governance,
                });
            }
        };
        Ok(ApiReply { data: Json(data), next, governance })
    }

    /// The violation at this path of the body, if the body was refused for one.
    pub(super) fn violation(&self, path: &str) -> Option<Json> {
        self.details.items("/violations").into_iter().find(|it| it.is("/path", path))
    }
}

impl Guest {
    /// The person as the caller of an operation without parameters.
    pub(super) fn caller(&self) -> NoQuery {
        NoQuery(self.ctx.clone(), Arc::clone(&self.gateway))
    }

    /// Asks an operation as the API would be asked with a token of the person. `scope` is that of
    /// its route; refused without it.
    pub(super) async fn ask<F>(
        &self,
        scope: Option<Scope>,
        operation: impl FnOnce(NoQuery) -> F,
    ) -> Result<ApiReply, Problem>
    where
        F: Future<Output = HandlerResult>,
    {
        if let Some(scope) = scope
            && let Err(refusal) = self.ctx.require(scope)
        {
            return Problem::or_reply(refusal.into());
        }
        let outcome = operation(self.caller()).await;
        Problem::or_reply(outcome.unwrap_or_else(|refused| refused))
    }

    /// The page that says so, if the person lacks a scope.
    pub(super) fn require(&self, scope: Scope) -> Result<(), Response> {
        self.ctx.require(scope).map_err(|refusal| Problem::of(refusal).page(self))
    }

    /// Asks an operation that takes parameters.
    pub(super) async fn read<F>(
        &self,
        scope: Option<Scope>,
        query: Option<String>,
        operation: impl FnOnce(WithQuery) -> F,
    ) -> Result<ApiReply, Problem>
    where
        F: Future<Output = HandlerResult>,
    {
        self.ask(scope, |NoQuery(ctx, gateway)| operation(WithQuery(ctx, gateway, query))).await
    }

    /// The items of a list under these filters; none if the person may not see it.
    pub(super) async fn items<F>(
        &self,
        scope: Option<Scope>,
        filters: &str,
        list: impl FnOnce(WithQuery) -> F,
    ) -> Vec<Json>
    where
        F: Future<Output = HandlerResult>,
    {
        let listed = self.read(scope, Some(filters.to_owned()), list).await;
        listed.map(|reply| reply.items()).unwrap_or_default()
    }

    /// A JSON body as a program would send it to an operation.
    pub(super) fn json_body(&self, value: &Value) -> RequestBody {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bytes = value.to_string().into_bytes();
        RequestBody::written(HeaderMap::from_iter([json]), bytes, &self.gateway)
    }

    /// An empty body.
    pub(super) fn no_body(&self) -> RequestBody {
        RequestBody::written(HeaderMap::new(), Vec::new(), &self.gateway)
    }

    /// True if the person may use what this scope opens.
    pub(super) fn may(&self, scope: Scope) -> bool {
        self.ctx.caller().scopes.contains(scope)
    }
}
