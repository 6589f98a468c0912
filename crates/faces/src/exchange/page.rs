//! Lists as requests ask for them: filters, page and cursor.

use portcullis_app::Ctx;
use portcullis_core::{id::OrgId, refusal::Refusal};
use serde::Serialize;

use super::{outcome::Outcome, query::Query};
use crate::gateway::{Gateway, cursors::List};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;
/// Characters of what is searched for at most.
const LONGEST_SEARCH: usize = 64;

/// A list as one request asks for it: its filters, its page, and where it goes on.
pub(crate) struct Listing<'a> {
    gateway: &'a Gateway,
    org: OrgId,
    name: &'static str,
    filters: &'static [&'static str],
    pub(crate) query: Query,
    pub(crate) limit: usize,
    pub(crate) after: Option<String>,
}

impl<'a> Listing<'a> {
    /// Reads the query of a list that knows `filters`. Rejects other parameters, and a cursor of
    /// another org, list or filter.
    pub(crate) fn read(
        gateway: &'a Gateway,
        ctx: &Ctx,
        name: &'static str,
        filters: &'static [&'static str],
        raw: Option<&str>,
    ) -> Result<Self, Refusal> {
        let query = Query::parse(raw, &[filters, &["limit", "cursor"]].concat())?;
        let org = ctx.caller().org_id;
        let limit = limit(&query)?;
        let mut listing = Self { gateway, org, name, filters, query, limit, after: None };
        let cursor = listing.query.text("cursor");
        let now = gateway.app.base.now();
        let open = |cursor| listing.bound(|list| gateway.cursors.open(list, cursor, now));
        listing.after = cursor.map(open).transpose()?;
        Ok(listing)
    }

    /// The beginning of a word that is searched for, if one is.
    pub(crate) fn search(&self) -> Result<Option<String>, Refusal> {
        self.query.short("q", LONGEST_SEARCH)
    }

    /// The page with `data`; it goes on after the record `end`, if there is one.
    pub(crate) fn answer(
        self,
        data: &impl Serialize,
        end: Option<&(impl ToString + ?Sized)>,
    ) -> Outcome {
        let now = self.gateway.app.base.now();
        let next_cursor = end.and_then(|end| {
            self.bound(|list| self.gateway.cursors.seal(list, &end.to_string(), now))
        });
        Outcome::page(data, self.limit, next_cursor)
    }

    fn bound<T>(&self, then: impl FnOnce(&List<'_>) -> T) -> T {
        let given = self.filters.iter().map(|name| (*name, self.query.text(name)));
        let filters: Vec<_> = given.collect();
        then(&List { org: self.org, name: self.name, filters: &filters })
    }
}

/// The parameter `limit` of a query.
fn limit(query: &Query) -> Result<usize, Refusal> {
    let limit: Option<usize> = query.parsed("limit", "an integer from 1 to 200")?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let message = "`limit` has to be an integer from 1 to 200.";
        return Err(Refusal::bad_parameter("limit", message));
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_outside_one_to_two_hundred_is_refused() {
        for raw in ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.5"] {
            let query = Query::parse(Some(raw), &["limit", "cursor"]).unwrap();
            assert!(limit(&query).is_err(), "{raw}");
        }
    }
}
