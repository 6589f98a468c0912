//! Lists of tools, prompts, resources, templates and skills: the texts of what the caller may use, page by page.

use std::sync::Arc;

use bytes::Bytes;
use portcullis_app::{Ctx, ListedNames, PageQuery};
use portcullis_core::{
    capability::CapabilityKind,
    json::{JsonValue as _, Kind},
    mcp::{Era, ProtocolError, Request as Asking, interaction::ClientCapabilities, meta},
};
use serde_json::{Value, json};

use super::{Face, common, search};
use crate::{
    exchange::{Outcome, message::List},
    gateway::{Gateway, cursors, mcp_settings::ListForm},
};

/// Beyond so many tools, an address that lists automatically lists the tools to find them with.
pub const MOST_LISTED: usize = 40;

/// A list that is asked for.
pub(super) struct Listing<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) ctx: &'a Ctx,
    pub(super) face: &'a Face,
    pub(super) asking: &'a Asking,
    pub(super) kind: CapabilityKind,
}

impl Listing<'_> {
    /// The page that is asked for.
    pub(super) async fn page(&self) -> Result<List, Outcome> {
        let tools = &self.gateway.app.tools;
        let hosts_apps = self.hosts_apps();
        let provider = self.face.provider();
        let offered = tools.offered_tools(self.ctx, provider, self.kind, hosts_apps).await?;
        let (searched, names) = match self.face {
            Face::One(_) => (false, ListedNames::Own),
            Face::All(_) if self.kind != CapabilityKind::Tool => (false, ListedNames::Unique),
            Face::All(ListForm::List) => (false, ListedNames::Unique),
            Face::All(ListForm::Search) => (true, ListedNames::Unique),
            Face::All(ListForm::Auto) => (offered.count() > MOST_LISTED, ListedNames::Unique),
        };
        let after = self.after()?;
        if searched {
            let items = Bytes::from(search::tools(&offered));
            return Ok(List { member: self.member(), items, rest: self.rest(None) });
        }
        let query = PageQuery { names, era: self.asking.era, hosts_apps, after };
        let page = tools.page(&offered, query);
        let rest = self.rest(page.next.as_deref());
        Ok(List { member: self.member(), items: page.text.clone(), rest })
    }

    /// Returns true where pages of apps pass, for a client that shows them. What clients of the older era show was said in
    /// a handshake of which nothing is kept.
    fn hosts_apps(&self) -> bool {
        let declared = self.asking.meta.root().get(meta::CLIENT_CAPABILITIES);
        let is_host = self.asking.era != Era::Modern
            || declared.is_some_and(|declared| ClientCapabilities::read(declared).ui);
        self.face.provider().is_some() && is_host
    }

    /// The member of the result that holds the list.
    const fn member(&self) -> &'static str {
        match self.kind {
            CapabilityKind::Tool => "tools",
            CapabilityKind::Prompt => "prompts",
            CapabilityKind::Resource => "resources",
            CapabilityKind::Template => "resourceTemplates",
            CapabilityKind::Skill => "skills",
        }
    }

    /// The members of the result that follow the tools, and its end.
    fn rest(&self, next: Option<&str>) -> String {
        let mut more = common(self.asking.era);
        if let Some(cursor) = next.and_then(|next| self.cursor(next)) {
            more.insert("nextCursor".to_owned(), json!(cursor));
        }
        if self.asking.era == Era::Modern {
            more.insert("ttlMs".to_owned(), json!(self.gateway.mcp.ttl_ms));
            more.insert("cacheScope".to_owned(), json!("private"));
        }
        match Value::Object(more).to_string().strip_prefix('{') {
            None | Some("}") => "}".to_owned(),
            Some(members) => format!(",{members}"),
        }
    }

    fn after(&self) -> Result<Option<String>, ProtocolError> {
        let Some(cursor) = self.asking.params.root().get("cursor") else { return Ok(None) };
        if matches!(cursor.kind(), Kind::Null | Kind::Text("")) {
            return Ok(None);
        }
        let wrong = || ProtocolError::bad_params("`cursor` has to be a text.");
        let cursor = cursor.text().ok_or_else(wrong)?;
        let now = self.gateway.app.base.now();
        let opened = self.bound(|list| self.gateway.cursors.open(list, cursor, now));
        opened.map(Some).map_err(|refusal| ProtocolError::bad_params(refusal.to_string()))
    }

    fn cursor(&self, position: &str) -> Option<String> {
        let now = self.gateway.app.base.now();
        self.bound(|list| self.gateway.cursors.seal(list, position, now))
    }

    fn bound<T>(&self, then: impl FnOnce(&cursors::List<'_>) -> T) -> T {
        let filters = [("provider", self.face.provider())];
        let org = self.ctx.caller().org_id;
        let name = match self.kind {
            CapabilityKind::Tool => "mcp_tools",
            CapabilityKind::Prompt => "mcp_prompts",
            CapabilityKind::Resource => "mcp_resources",
            CapabilityKind::Template => "mcp_templates",
            CapabilityKind::Skill => "mcp_skills",
        };
        then(&cursors::List { org, name, filters: &filters })
    }
}
