//! Whole nodes in this process: what calls and tokens meet as time goes by, and what is proven of
//! their logs.

#![cfg(test)]

mod aging;
mod bounds;
mod broken;
mod lineage;
mod log;
mod node;
mod registrations;
mod tampered;
mod unreachable;
