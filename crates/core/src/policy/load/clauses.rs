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
    let read = match policy.rule.cedar().to_pst() {
        Ok(Pst::Static(tree)) => read_clauses(tree.body().clauses()),
        Ok(Pst::Linked(_)) | Err(_) => Vec::new(),
    };
    if read.len() == expressions.len() {
        return expressions.into_iter().zip(read).map(|(it, read)| part(it, read)).collect();
    }
    // The two trees of the library disagree about the clauses: one clause is always right.
    vec![part(condition, ReadClause { paths: policy.paths.clone(), is_unless: false })]
}

/// A clause as the tree of its policy tells it.
struct ReadClause {
    paths: Paths,
    /// The condition is the opposite of what is written.
    is_unless: bool,
}

fn part(expression: &Expr, read: ReadClause) -> ConditionClause {
    let written = |expression: &Expr| {
        let text = expression.source_loc().and_then(|place| place.snippet());
        text.map_or_else(|| expression.to_string(), str::to_owned)
    };
    let text = if read.is_unless
        && let ExprKind::UnaryApp { op: UnaryOp::Not, arg } = expression.expr_kind()
    {
        format!("!({})", written(arg))
    } else {
        written(expression)
    };
    ConditionClause { text, paths: read.paths, expression: expression.clone() }
}

fn read_clauses(clauses: &[Clause]) -> Vec<ReadClause> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    let read = |expression, is_unless| ReadClause {
        paths: context_paths::of_expression(expression).paths,
        is_unless,
    };
    for clause in clauses {
        match clause {
            Clause::When(expr) => open.push(&**expr),
            Clause::Unless(expr) => {
                found.push(read(expr, true));
                continue;
            }
        }
        while let Some(tree) = open.pop() {
            if let Tree::BinaryOp { op: BinaryOp::And, left, right } = tree {
                open.extend([&**right, &**left]);
            } else {
                found.push(read(tree, false));
            }
        }
    }
    found
}
