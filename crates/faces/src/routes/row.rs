//! A row of the route table.

use std::sync::Arc;

use axum::http::Method;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::{exchange::RouteSpec, gateway::Gateway};

/// Operations of one path and what each of them needs.
pub(crate) struct Row {
    pub(crate) spec: RouteSpec,
    /// Makes them, with their description, which takes much more memory than they do.
    pub(crate) routes: fn() -> Routes,
}

/// Operations with their description and their handlers.
pub(crate) type Routes = UtoipaMethodRouter<Arc<Gateway>>;

/// The path templates and methods of the operations.
pub(crate) fn operations(routes: &Routes) -> impl Iterator<Item = (&str, Method)> {
    let (_, documented, _) = routes;
    documented.paths.iter().flat_map(|(path, item)| {
        let known = [
            (Method::GET, item.get.is_some()),
            (Method::POST, item.post.is_some()),
            (Method::PUT, item.put.is_some()),
            (Method::PATCH, item.patch.is_some()),
            (Method::DELETE, item.delete.is_some()),
        ];
        let methods = known.into_iter().filter(|(_, exists)| *exists);
        methods.map(move |(method, _)| (path.as_str(), method))
    })
}
