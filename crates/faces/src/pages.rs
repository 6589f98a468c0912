//! Pages for browsers.

pub(crate) mod approvals;
pub(crate) mod console;
pub(crate) mod form;
pub(crate) mod html;
pub(crate) mod landing;
pub(crate) mod login;
pub(crate) mod oauth;
