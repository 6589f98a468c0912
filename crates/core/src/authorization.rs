//! The authorization server for MCP clients (OAuth 2.1), as far as it can be judged without waiting: clients,
//! their requests, the faces that tokens are good for, registrations and codes.
//!
//! The way to a code is a sequence of types, each made from the one before: [`AuthorizationRequest`] →
//! [`ClientRequest`] (the client is known, and the address that it returns to is its own) → [`Terms`] (what is
//! asked for is well-formed) → [`PersonTerms`] (a person is known) → [`Consented`]. Only the last gives a code.

mod client;
mod code;
mod error;
mod face;
mod form;
mod hosts;
mod redirect;
mod registration;
mod request;

pub use self::{
    client::{
        COMMAND_LINE, COMMAND_LINE_PATH, Client, ClientAuthentication, ClientGrant, ClientKind,
        ClientRef, MAX_CLIENT_ID, MAX_CLIENT_KEYS,
    },
    code::{Code, CodeChallenge},
    error::{OAuthError, OAuthErrorCode},
    face::Face,
    form::OAuthForm,
    hosts::OwnHosts,
    redirect::RedirectUri,
    registration::{ClientRegistration, REGISTRATIONS, RegistrationKey, SealedRegistration},
    request::{AuthorizationRequest, ClientRequest, Consented, DEFAULT_SCOPES, PersonTerms, Terms},
};
