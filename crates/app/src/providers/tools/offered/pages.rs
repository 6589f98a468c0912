//! Pages of lists as text, prepared once for all callers that may use the same tools.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use moka::sync::Cache;
use portcullis_core::{
    capability::CapabilityId,
    mcp::{Era, LEGACY},
};

use super::{OfferedTools, view::View};
use crate::{
    base::caches::{Lifetime, NodeCache},
    providers::tools::Tools,
};

/// Bounds of a page: tools, and bytes after which no tool is added.
const PAGE_TOOLS: usize = 1_000;
const PAGE_BYTES: usize = 1 << 20;
/// Time for which an unused page is kept.
const IDLE: Duration = Duration::from_mins(10);

/// Names under which tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListedNames {
    /// Names that the provider gave.
    Own,
    /// Names that are unique among all providers.
    Unique,
}

/// A page that is asked for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PageQuery {
    pub names: ListedNames,
    pub era: Era,
    /// Pages of tools are told.
    pub hosts_apps: bool,
    /// Id of the last tool of the page before.
    pub after: Option<String>,
}

/// A page of a list.
#[derive(Debug)]
pub struct ListedPage {
    /// The tools as JSON, separated by commas.
    pub text: Bytes,
    /// Id of the last tool, if there are more.
    pub next: Option<String>,
}

/// Everything that a page depends on, also the tools that the caller may use: a caller is not given
/// a page that was prepared for one who may use others. Holds the lists, so that no other list can
/// have their addresses.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PageKey {
    views: Box<[View]>,
    query: PageQuery,
}

/// The pages that are kept.
#[derive(Debug)]
pub(super) struct Pages(Cache<PageKey, Arc<ListedPage>>);

impl Pages {
    pub(super) fn new() -> Self {
        let weight = |key: &PageKey, page: &Arc<ListedPage>| {
            let views: usize = key.views.iter().map(View::bytes).sum();
            page.text.len() + views + 256
        };
        Self(NodeCache::Pages.make(Lifetime::Unused(IDLE), weight))
    }
}

impl Tools {
    /// A page of the tools that a caller may use; prepared now if it is not.
    #[must_use]
    pub fn page(&self, offered: &OfferedTools, query: PageQuery) -> Arc<ListedPage> {
        let views = offered.views.clone().into_boxed_slice();
        // All versions of the older era are told the same.
        let era = if query.era == Era::Modern { Era::Modern } else { Era::Legacy(LEGACY[0]) };
        let query = PageQuery { era, ..query };
        let key = PageKey { views, query };
        let Pages(pages) = &self.offers.pages;
        if let Some(page) = pages.get(&key) {
            return page;
        }
        let page = Arc::new(write_page(offered, &key.query));
        pages.insert(key, Arc::clone(&page));
        page
    }
}

/// Writes the tools after the one of this id.
fn write_page(offered: &OfferedTools, query: &PageQuery) -> ListedPage {
    let PageQuery { names, era, hosts_apps, after } = query;
    let after: Option<CapabilityId> = after.as_ref().and_then(|id| id.parse().ok());
    let after = after.as_ref().map(|id| (id.provider(), id.name()));
    let is_after = |id: (&str, &str)| after.is_none_or(|after| id > after);
    let tools = offered.iter().filter(|it| is_after((it.tool.id.provider(), it.tool.id.name())));
    let mut text = String::new();
    let mut last: Option<&str> = None;
    let mut next = None;
    for (count, tool) in tools.enumerate() {
        if count >= PAGE_TOOLS || text.len() >= PAGE_BYTES {
            next = last.map(str::to_owned);
            break;
        }
        if count > 0 {
            text.push(',');
        }
        let name = match names {
            ListedNames::Unique => &tool.name,
            ListedNames::Own => tool.tool.id.name(),
        };
        let unique = *names == ListedNames::Unique;
        tool.listed.write(name, unique, *era, *hosts_apps, &mut text);
        last = Some(tool.tool.id.as_str());
    }
    // What is kept has no room to spare.
    ListedPage { text: Bytes::from(text.into_boxed_str().into_boxed_bytes()), next }
}
