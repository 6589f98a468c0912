//! `tools/list`: the texts of the tools that the caller may use, page by page.

use std::sync::Arc;

use portcullis_app::{Ctx, OfferedTools};
use portcullis_core::mcp::{Era, ProtocolError, Request as Asking};
use serde_json::{Value, json};

use super::{Face, Listed, common, search};
use crate::http::{Gateway, outcome::Outcome, page::List};

/// Beyond so many tools, an address that lists automatically lists the tools to find them with.
const MANY: usize = 40;
/// Bounds of a page.
const PAGE_TOOLS: usize = 1_000;
const PAGE_BYTES: usize = 1 << 20;

/// A list that is asked for.
pub(super) struct Listing<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) ctx: &'a Ctx,
    pub(super) face: &'a Face,
    pub(super) asking: &'a Asking,
}

impl Listing<'_> {
    /// The result as text.
    pub(super) async fn text(&self) -> Result<String, Outcome> {
        let offered = self.gateway.app.tools.offered_tools(self.ctx, self.face.provider()).await?;
        let searched = match self.face {
            Face::One(_) | Face::All(Listed::List) => false,
            Face::All(Listed::Search) => true,
            Face::All(Listed::Auto) => offered.count() > MANY,
        };
        let after = self.after()?;
        let mut text = String::from("{\"tools\":[");
        let next = if searched {
            text.push_str(&search::tools(&offered));
            None
        } else {
            self.write_page(&offered, after.as_deref(), &mut text)
        };
        text.push(']');
        let mut more = common(self.asking.era);
        if let Some(cursor) = next.and_then(|next| self.cursor(&next)) {
            more.insert("nextCursor".to_owned(), json!(cursor));
        }
        if self.asking.era == Era::Modern {
            more.insert("ttlMs".to_owned(), json!(self.gateway.mcp.ttl_ms));
            more.insert("cacheScope".to_owned(), json!("private"));
        }
        let more = Value::Object(more).to_string();
        let more = more.strip_prefix('{').unwrap_or("}");
        if more != "}" {
            text.push(',');
        }
        text.push_str(more);
        Ok(text)
    }

    /// Writes the tools after the one of this id; gives the id of the last one if there are more.
    fn write_page(
        &self,
        offered: &OfferedTools,
        after: Option<&str>,
        text: &mut String,
    ) -> Option<String> {
        let after = after.and_then(|id| id.split_once(':'));
        let begin = text.len();
        let mut last: Option<&str> = None;
        for (count, tool) in offered
            .iter()
            .filter(|it| {
                after.is_none_or(|after| (it.tool.id.provider(), it.tool.id.name()) > after)
            })
            .enumerate()
        {
            if count > 0 {
                if count >= PAGE_TOOLS || text.len() - begin >= PAGE_BYTES {
                    return last.map(str::to_owned);
                }
                text.push(',');
            }
            let name = match self.face {
                Face::All(_) => &tool.name,
                Face::One(_) => tool.tool.id.name(),
            };
            tool.listed.write(name, self.asking.era, text);
            last = Some(tool.tool.id.as_str());
        }
        None
    }

    fn after(&self) -> Result<Option<String>, ProtocolError> {
        let cursor = match self.asking.params.get("cursor") {
            None => return Ok(None),
            Some(Value::String(cursor)) => cursor,
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_),
            ) => return Err(ProtocolError::bad_params("`cursor` has to be a text.")),
        };
        let now = self.gateway.app.base.now();
        let opened = self.bound(|list| self.gateway.cursors.open(list, cursor, now));
        opened.map(Some).map_err(|refusal| ProtocolError::bad_params(refusal.to_string()))
    }

    fn cursor(&self, position: &str) -> Option<String> {
        let now = self.gateway.app.base.now();
        self.bound(|list| self.gateway.cursors.seal(list, position, now))
    }

    fn bound<T>(&self, then: impl FnOnce(&List<'_>) -> T) -> T {
        let filters = [("provider", self.face.provider())];
        let org = self.ctx.caller().org_id;
        then(&List { org, name: "mcp_tools", filters: &filters })
    }
}
