//! The API as the operator's commands ask it, within their process.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, header},
    response::Response,
};
use portcullis_app::Session;
use portcullis_core::principal::Scope;
use tower::ServiceExt as _;

use super::{router, row::Row, table};
use crate::{
    exchange::{Access, OperatorSession, RouteSpec},
    gateway::Gateway,
    installation,
};

/// Operations of the API without a listener, for the operator of the installation.
///
/// **Invariant:** no request of the network becomes the operator's. What makes it so is an extension of a type that
/// cannot be named outside of this crate, that only [`Self::ask`] adds, and that no header or body turns into; and the
/// router to which it is added is never given to a listener.
///
/// ```compile_fail,E0603
/// use portcullis_faces::exchange::OperatorSession;
/// ```
#[derive(Debug)]
pub struct OperatorApi(Router);

impl OperatorApi {
    /// The operations that manage an org and its log, and those that only the operator has.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let rows = table().into_iter().filter(is_for_operators).collect();
        let mut routes = router::routed(rows, &[], &gateway);
        for (path, methods) in installation::table() {
            routes = routes.route(path, router::framed(methods, RouteSpec::OPERATOR, &gateway));
        }
        Self(routes.with_state(gateway))
    }

    /// The answer to a request of the operator, for the org of the session.
    pub async fn ask(&self, session: Arc<Session>, mut request: Request) -> Response {
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        request.extensions_mut().insert(OperatorSession(session));
        let Ok(response) = self.0.clone().oneshot(request).await;
        response
    }
}

fn is_for_operators(row: &Row) -> bool {
    use Scope::{Admin, ApprovalsDecide, ApprovalsRead};
    let access = row.spec.access;
    matches!(access, Access::Token | Access::Scoped(Admin | ApprovalsDecide | ApprovalsRead))
}
