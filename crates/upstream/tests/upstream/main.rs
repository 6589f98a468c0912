//! Upstream servers of every temper, over real sockets and real processes.

#[cfg(test)]
mod fake;
#[cfg(test)]
mod http;
#[cfg(test)]
mod http_eras;
#[cfg(test)]
mod jwks;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod starts;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod support;
