//! Lists as requests ask for them: filters, page and cursor.

use std::str::FromStr;

use portcullis_app::{Ctx, ToolQuery};
use portcullis_core::{capability::CapabilityKind, id::OrgId, policy::Access, refusal::Refusal};
use portcullis_store::filters::{self, Values};
use serde::{Serialize, de::DeserializeOwned};

use super::{outcome::Outcome, query::Query};
use crate::gateway::{Gateway, cursors::List};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;
/// Parameters of every list.
const PAGE: [&str; 2] = ["limit", "cursor"];

/// A list as one request asks for it: its filters, its page, and where it goes on.
pub(crate) struct Listing<'a> {
    gateway: &'a Gateway,
    org: OrgId,
    name: &'static str,
    pub(crate) query: Query,
    pub(crate) limit: usize,
    pub(crate) after: Option<String>,
}

impl<'a> Listing<'a> {
    /// The capabilities of a kind that the caller may use, as far as `provider` and `q` let them through.
    pub(crate) fn usable(&self, kind: CapabilityKind) -> Result<ToolQuery, Refusal> {
        Ok(ToolQuery {
            kind,
            providers: self.query.list("provider"),
            text: self.query.short("q", 100)?,
            access: vec![Access::Allow, Access::Conditional],
            after: self.after.clone(),
            limit: self.limit,
        })
    }

    /// The kinds that `kind` names; none means all.
    pub(crate) fn kinds(&self) -> Result<Vec<CapabilityKind>, Refusal> {
        let named = self.query.any_of("kind", &CapabilityKind::ALL.map(CapabilityKind::as_str))?;
        Ok(named.iter().filter_map(|word| CapabilityKind::from_word(word)).collect())
    }

    /// Reads the query of a list that knows `filters`. Rejects other parameters, and a cursor of
    /// another org, list or filter.
    pub(crate) fn read(
        gateway: &'a Gateway,
        ctx: &Ctx,
        name: &'static str,
        filters: &[&'static str],
        raw: Option<&str>,
    ) -> Result<Self, Refusal> {
        let query = Query::parse(raw, &[filters, &PAGE].concat())?;
        let org = ctx.caller().org_id;
        let limit = limit(&query)?;
        let mut listing = Self { gateway, org, name, query, limit, after: None };
        let cursor = listing.query.text("cursor");
        let now = gateway.app.base.now();
        let open = |cursor| listing.bound(|list| gateway.cursors.open(list, cursor, now));
        listing.after = cursor.map(open).transpose()?;
        Ok(listing)
    }

    /// Reads the query of a list with a declared filter, which takes `others` besides.
    pub(crate) fn filtered<F: DeserializeOwned>(
        gateway: &'a Gateway,
        ctx: &Ctx,
        name: &'static str,
        others: &[&'static str],
        raw: Option<&str>,
    ) -> Result<(F, Self), Refusal> {
        let names = filters::names::<F>();
        let listing = Self::read(gateway, ctx, name, &[names, others].concat(), raw)?;
        let given = listing.query.given().filter(|(name, _)| names.contains(name));
        let filter = filters::read(given.map(|(name, text)| (name, Values::Text(text))))
            .map_err(|wrong| Refusal::bad_parameter(&wrong.name, format!("{wrong}.")))?;
        Ok((filter, listing))
    }

    /// The record after which the page begins, if it is not the first one.
    pub(crate) fn after<T: FromStr>(&self) -> Option<T> {
        self.after.as_deref()?.parse().ok()
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
        let given = self.query.given().filter(|(name, _)| !PAGE.contains(name));
        let filters: Vec<_> = given.map(|(name, text)| (name, Some(text))).collect();
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
