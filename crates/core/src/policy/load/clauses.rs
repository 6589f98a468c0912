//! The conditions of one policy, clause by clause: what an explanation shows, and what is evaluated
//! alone when only some of what a policy reads is known.

use cedar_policy_core::ast::{Expr, ExprKind, UnaryOp};

use crate::policy::{
    language::context_paths,
    load::compiled::{Compiled, ConditionClause},
};

impl Compiled {
    /// Its conditions in the order in which they are evaluated; none when it always holds.
    pub(in crate::policy) fn parts(&self) -> &[ConditionClause] {
        self.clauses.get_or_init(|| {
            let clauses = self.rule.condition().into_iter().flat_map(split);
            let clause = |expression: &Expr| ConditionClause {
                text: text(expression),
                paths: context_paths::of(expression).paths,
                expression: expression.clone(),
            };
            clauses.map(clause).collect()
        })
    }
}

/// The conditions that all have to hold.
fn split(condition: &Expr) -> Vec<&Expr> {
    let mut open = vec![condition];
    let mut found = Vec::new();
    while let Some(expression) = open.pop() {
        if let ExprKind::And { left, right } = expression.expr_kind()
            && !is_within(expression, left)
        {
            open.extend([&**right, &**left]);
        } else {
            found.push(expression);
        }
    }
    found
}

/// Returns true for `is … in`: the library makes two conditions of it, which stand in one place.
fn is_within(both: &Expr, left: &Expr) -> bool {
    matches!(left.expr_kind(), ExprKind::Is { .. }) && left.source_loc() == both.source_loc()
}

/// The condition as it is written; an `unless` as what it means.
fn text(expression: &Expr) -> String {
    let written = |expression: &Expr| {
        let text = expression.source_loc().and_then(|place| place.snippet());
        text.map_or_else(|| expression.to_string(), str::to_owned)
    };
    let text = written(expression);
    if let ExprKind::UnaryApp { op: UnaryOp::Not, arg } = expression.expr_kind()
        && text.starts_with("unless")
    {
        return format!("!({})", written(arg));
    }
    text
}
