//! Whole nodes in this process: what calls and tokens meet as time goes by.

#![cfg(test)]

mod aging;
mod node;
mod unreachable;
