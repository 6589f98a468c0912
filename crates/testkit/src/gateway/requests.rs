//! Requests to the gateway over its API.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Gateway, PATIENCE, Principal};
use crate::Answer;

impl Gateway {
    /// A request to a path, to be completed and sent with [`Gateway::send`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url())).timeout(PATIENCE)
    }

    /// Sends a request and reads the answer.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        Answer::read(request.send().await.expect("an answer")).await
    }

    /// The same with a token.
    pub fn request_of(&self, who: &Principal, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(&who.token)
    }

    /// GET with a token.
    pub async fn get(&self, who: &Principal, path: &str) -> Answer {
        self.send(self.request_of(who, Method::GET, path)).await
    }

    /// An event of the log.
    pub async fn event(&self, who: &Principal, id: &str) -> Answer {
        self.get(who, &format!("/v1/audit/events/{id}")).await
    }

    /// DELETE with a token.
    pub async fn delete(&self, who: &Principal, path: &str) -> Answer {
        self.send(self.request_of(who, Method::DELETE, path)).await
    }

    /// Invokes a tool with this input.
    pub async fn invoke(&self, who: &Principal, tool: &str, input: Value) -> Answer {
        let body = json!({ "input": input }).to_string();
        self.post(who, &format!("/v1/mcps/{tool}/invoke"), &body).await
    }

    /// Invokes a tool under an idempotency key.
    pub async fn invoke_keyed(
        &self,
        who: &Principal,
        tool: &str,
        key: &str,
        input: &Value,
    ) -> Answer {
        let body = json!({ "input": input }).to_string();
        let request = self.json(who, &format!("/v1/mcps/{tool}/invoke"), &body);
        self.send(request.header("idempotency-key", key)).await
    }

    /// POST of a body declared as JSON, with a token.
    pub async fn post(&self, who: &Principal, path: &str, body: &str) -> Answer {
        self.send(self.json(who, path, body)).await
    }

    /// The same, to be completed and sent.
    pub fn json(&self, who: &Principal, path: &str, body: &str) -> RequestBuilder {
        let request = self.request_of(who, Method::POST, path);
        request.header("content-type", "application/json").body(body.to_owned())
    }
}
