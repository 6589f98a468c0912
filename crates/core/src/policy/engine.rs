//! The half of deciding that knows nothing of tools: which of many rules can apply to a principal,
//! an action and a resource, and what each of them says.
//!
//! A rule applies only if its scope matches, and a scope is three constraints of five forms. So the
//! rules of a place (an action with its resource) are found when a set is loaded, and split by what
//! they ask of the principal; a request looks up the few keys of its principal and evaluates what
//! it finds there. Leaving a rule out changes neither the decision nor its reasons nor its errors:
//! its scope is false, and a false scope is never evaluated any further.
//!
//! Tests hold the meaning of the rules found against the library's own authorizer.

mod conditions;
mod evaluator;
mod keys;
mod request_target;
mod rule;
mod slice;
mod value;

pub(super) use self::evaluator::Insight;
pub use self::{
    conditions::Conditions,
    evaluator::{RequestEntity, RuleResults, Situation, Unbuildable},
    keys::{Key, PrincipalKeys},
    request_target::{Closeness, Member, RequestTarget},
    rule::{ActionScope, EntityScope, Rule, RuleScope},
    slice::Slice,
    value::Plain,
};
