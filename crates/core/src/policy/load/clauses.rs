//! The conditions of one policy, clause by clause: what an explanation shows, and what is evaluated
//! alone when only some of what a policy reads is known.

use cedar_policy::pst::{BinaryOp, Clause, Expr as Tree, Policy as Pst};
use cedar_policy_core::ast::{Expr, ExprKind, UnaryOp};

use crate::policy::{
    engine::Clauses,
    language::context_paths::{self, Paths},
    load::compiled::{Compiled, ConditionClause},
};

impl Compiled {
    /// Its conditions in the order in which they are evaluated; none when it always holds.
    pub(in crate::policy) fn parts(&self) -> &[ConditionClause] {
        self.clauses.get_or_init(|| parts(self))
    }
}

fn parts(policy: &Compiled) -> Vec<ConditionClause> {
    let Some(condition) = policy.rule.condition() else { return Vec::new() };
    let expressions = Clauses::of(condition);
    let paths = match policy.rule.cedar().to_pst() {
        Ok(Pst::Static(tree)) => paths(tree.body().clauses()),
        Ok(Pst::Linked(_)) | Err(_) => Vec::new(),
    };
    if paths.len() == expressions.len() {
        let part = |(expression, paths): (&Expr, Paths)| part(expression, paths);
        return expressions.into_iter().zip(paths).map(part).collect();
    }
    // The two trees of the library disagree about the clauses: one clause is always right.
    vec![part(condition, policy.paths.clone())]
}

fn part(expression: &Expr, paths: Paths) -> ConditionClause {
    let inner = if let ExprKind::UnaryApp { op: UnaryOp::Not, arg } = expression.expr_kind() {
        Some(arg)
    } else {
        None
    };
    let written = |expression: &Expr| {
        let text = expression.source_loc().and_then(|place| place.snippet());
        text.map_or_else(|| expression.to_string(), str::to_owned)
    };
    let text = written(expression);
    let text = match inner {
        // An `unless`: the condition is the opposite of what is written.
        Some(inner) if !text.starts_with('!') => format!("!({})", written(inner)),
        Some(_) | None => text,
    };
    ConditionClause { text, paths, expression: expression.clone() }
}

fn paths(clauses: &[Clause]) -> Vec<Paths> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for clause in clauses {
        match clause {
            Clause::When(expr) => open.push(&**expr),
            Clause::Unless(expr) => {
                found.push(context_paths::of_expression(expr).paths);
                continue;
            }
        }
        while let Some(tree) = open.pop() {
            if let Tree::BinaryOp { op: BinaryOp::And, left, right } = tree {
                open.extend([&**right, &**left]);
            } else {
                found.push(context_paths::of_expression(tree).paths);
            }
        }
    }
    found
}
