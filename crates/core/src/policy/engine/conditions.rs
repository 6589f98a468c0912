//! Conditions in the form in which they are evaluated.
//!
//! The library keeps beside each part of a condition where it stands in the text and copies that
//! with every value. Here it is left out, and a part that many conditions share, such as
//! `context.input.amount`, is there once: ten thousand policies about a few hundred tools then stay
//! near the processor.

use std::{collections::HashSet, sync::Arc};

use cedar_policy_core::{
    ast::{Expr, ExprBuilder, ExprKind},
    expr_builder::ExprBuilder as _,
};

/// The conditions, and parts of them, that there are already.
#[derive(Debug, Default)]
pub struct Conditions(HashSet<Arc<Expr>>);

impl Conditions {
    /// The same condition without its places. Recurses as deep as it nests.
    pub(super) fn lean(&mut self, condition: &Expr) -> Arc<Expr> {
        let kind = self.kind(condition.expr_kind());
        let lean = ExprBuilder::new().with_expr_kind(kind);
        if let Some(known) = self.0.get(&lean) {
            return Arc::clone(known);
        }
        let lean = Arc::new(lean);
        self.0.insert(Arc::clone(&lean));
        lean
    }

    fn kind(&mut self, kind: &ExprKind) -> ExprKind {
        match kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Slot(_) | ExprKind::Unknown(_) => {
                kind.clone()
            }
            ExprKind::If { test_expr, then_expr, else_expr } => {
                let [test_expr, then_expr, else_expr] =
                    [test_expr, then_expr, else_expr].map(|part| self.lean(part));
                ExprKind::If { test_expr, then_expr, else_expr }
            }
            ExprKind::And { left, right } => {
                ExprKind::And { left: self.lean(left), right: self.lean(right) }
            }
            ExprKind::Or { left, right } => {
                ExprKind::Or { left: self.lean(left), right: self.lean(right) }
            }
            ExprKind::UnaryApp { op, arg } => ExprKind::UnaryApp { op: *op, arg: self.lean(arg) },
            ExprKind::BinaryApp { op, arg1, arg2 } => {
                ExprKind::BinaryApp { op: *op, arg1: self.lean(arg1), arg2: self.lean(arg2) }
            }
            ExprKind::ExtensionFunctionApp { fn_name, args } => {
                ExprKind::ExtensionFunctionApp { fn_name: fn_name.clone(), args: self.all(args) }
            }
            ExprKind::GetAttr { expr, attr } => {
                ExprKind::GetAttr { expr: self.lean(expr), attr: attr.clone() }
            }
            ExprKind::HasAttr { expr, attr } => {
                ExprKind::HasAttr { expr: self.lean(expr), attr: attr.clone() }
            }
            ExprKind::ExtHasAttr { expr, attrs } => {
                ExprKind::ExtHasAttr { expr: self.lean(expr), attrs: attrs.clone() }
            }
            ExprKind::Like { expr, pattern } => {
                ExprKind::Like { expr: self.lean(expr), pattern: pattern.clone() }
            }
            ExprKind::Is { expr, entity_type } => {
                ExprKind::Is { expr: self.lean(expr), entity_type: entity_type.clone() }
            }
            ExprKind::Set(items) => ExprKind::Set(self.all(items)),
            ExprKind::Record(members) => {
                let lean = |(name, member): (&_, &_)| (Clone::clone(name), self.own(member));
                ExprKind::Record(Arc::new(members.iter().map(lean).collect()))
            }
        }
    }

    fn all(&mut self, parts: &[Expr]) -> Arc<Vec<Expr>> {
        Arc::new(parts.iter().map(|part| self.own(part)).collect())
    }

    /// Copying an expression copies no part of it.
    fn own(&mut self, part: &Expr) -> Expr {
        Expr::clone(&self.lean(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lean_condition_says_the_same_without_any_place() {
        let texts = [
            "if context.a then [1, \"b\", User::\"c\"] else {\"d\": -1, \"e f\": !true}",
            "context has a.b && context.a[\"b c\"] like \"*x\\*\" || principal is User",
            "principal in [Group::\"x\"] && resource.tags.containsAny([1 + 2 * 3, 4 - 5])",
            "ip(\"10.0.0.1\").isInRange(ip(\"10.0.0.0/8\")) && principal.getTag(\"t\") == 3",
            "decimal(\"1.0\").lessThan(context.price) && context.n <= 5 && !(context.n < 2)",
        ];
        for text in texts {
            let written: Expr = text.parse().unwrap();

            let lean = Conditions::default().lean(&written);

            assert_eq!(*lean, written, "{text}");
            assert!(written.subexpressions().any(|part| part.source_loc().is_some()));
            assert!(lean.subexpressions().all(|part| part.source_loc().is_none()), "{text}");
        }
    }

    #[test]
    fn what_two_conditions_share_is_there_once() {
        let mut conditions = Conditions::default();
        let mut side = |text: &str| {
            let lean = conditions.lean(&text.parse::<Expr>().unwrap());
            let ExprKind::BinaryApp { arg1, .. } = lean.expr_kind() else { panic!("{lean}") };
            Arc::clone(arg1)
        };

        let (one, other) = (side("context.input.amount <= 500"), side("context.input.amount < 7"));

        assert!(Arc::ptr_eq(&one, &other));
    }
}
