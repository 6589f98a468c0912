//! JWTs of a real OpenID provider, with rotation, expiry and outage in between.

#![cfg(test)]

mod accepted;
mod given;
mod hostile;
mod outages;
mod rotation;
