//! Addresses that may be dialled.
//!
//! Names are resolved once, the addresses are filtered, and the connection goes to one of those
//! that are left, so a name cannot answer differently between check and connection.

mod guard;

pub(crate) use self::guard::Guard;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use http::Uri;
use url::Url;

use crate::error::SettingsError;

/// Reach of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Public unicast addresses only.
    Public,
    /// The operator named this host: also loopback and private networks.
    Named,
    /// The operator named this host and wants no encryption: loopback and private networks only.
    Private,
}

/// Class of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Public,
    Private,
    Never,
}

/// The address of a streamable-HTTP MCP server that may be dialled.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    reach: Reach,
}

impl Endpoint {
    /// Parses an `https` URL of a host on the public internet.
    ///
    /// Rejects other schemes, user names and passwords in the URL, fragments and literal addresses
    /// that are not public.
    pub fn public(text: &str) -> Result<Self, SettingsError> {
        let url = parse(text)?;
        if url.scheme() != "https" {
            return Err(SettingsError::Url("the URL must begin with `https://`"));
        }
        Self { url, reach: Reach::Public }.checked()
    }

    /// Parses the URL of a host that the operator named as allowed although it may be in a private
    /// network. `http` is accepted, and then reaches nothing but private addresses.
    pub fn allowed(text: &str) -> Result<Self, SettingsError> {
        let url = parse(text)?;
        let reach = if url.scheme() == "https" { Reach::Named } else { Reach::Private };
        Self { url, reach }.checked()
    }

    /// Reach.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The same for the HTTP client. Rejects what RFC 3986 does not allow in a URL and WHATWG's
    /// standard does.
    pub(crate) fn uri(&self) -> Result<Uri, SettingsError> {
        self.url.as_str().parse().map_err(|_| SettingsError::Url("this is not a URL"))
    }

    /// The same with `segment` behind its path.
    pub(crate) fn join(&self, segment: &str) -> Self {
        let mut joined = self.clone();
        joined.url.set_path(&format!("{}/{segment}", self.url.path().trim_end_matches('/')));
        joined
    }

    /// Literal addresses never meet the resolver, so they are checked here.
    fn checked(self) -> Result<Self, SettingsError> {
        let host = self.url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if !self.reach.allows(address) => {
                Err(SettingsError::Url("the URL's address may not be dialled"))
            }
            Ok(_) | Err(_) => Ok(self),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.url.scheme(), self.url.authority())
    }
}

fn parse(text: &str) -> Result<Url, SettingsError> {
    let url = Url::parse(text).map_err(|_| SettingsError::Url("this is not a URL"))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(SettingsError::Url("the URL must begin with `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SettingsError::Url("the URL must not hold a user name or password"));
    }
    if url.fragment().is_some() {
        return Err(SettingsError::Url("the URL must not have a `#` part"));
    }
    Ok(url)
}

impl Reach {
    /// Returns true if this address may be dialled.
    #[must_use]
    pub fn allows(self, address: IpAddr) -> bool {
        match (self, class(address)) {
            (Self::Public | Self::Named, Class::Public)
            | (Self::Named | Self::Private, Class::Private) => true,
            (Self::Public, Class::Private)
            | (Self::Private, Class::Public)
            | (Self::Public | Self::Named | Self::Private, Class::Never) => false,
        }
    }
}

fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Class {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127 | 10, ..) | (192, 168, _) | (172, 16..=31, _) | (100, 64..=127, _) => Class::Private,
        // This network, link-local (cloud metadata), IETF and documentation nets, benchmarking,
        // the old 6to4 relays, multicast and everything reserved above it.
        (0 | 224..=255, ..)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (192, 31, 196)
        | (192, 52, 193)
        | (192, 175, 48)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113) => Class::Never,
        _ => Class::Public,
    }
}

/// Only `2000::/3` is public. What carries an IPv4 address inside is never dialled: mapped,
/// compatible, translated (`64:ff9b::/96` and `64:ff9b:1::/48`), 6to4, Teredo, ISATAP.
fn class_v6(address: Ipv6Addr) -> Class {
    let [first, second, third, _, isatap, marker, ..] = address.segments();
    match (first, second) {
        _ if address == Ipv6Addr::LOCALHOST => Class::Private,
        (0xfc00..=0xfdff, _) => Class::Private,
        (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, 0..=0x0fff) => Class::Never,
        (0x2620, 0x4f) if third == 0x8000 => Class::Never,
        (0x2000..=0x3fff, _) if marker == 0x5efe && matches!(isatap, 0 | 0x200) => Class::Never,
        (0x2000..=0x3fff, _) => Class::Public,
        _ => Class::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = "127.0.0.1 127.255.255.254 10.0.0.1 10.255.255.255 172.16.0.1 \
        172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 ::1 fc00::1 fd12:3456::1 \
        fdff:ffff::1";
    const NEVER: &str = "0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 192.0.0.1 192.0.0.170 \
        192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.175.48.1 198.18.0.1 198.19.255.255 \
        198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: \
        ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8 ::127.0.0.1 ::8.8.8.8 64:ff9b::7f00:1 \
        64:ff9b::808:808 64:ff9b:1::1 64:ff9b:1:ffff::1 100::1 2001::1 \
        2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 \
        2002:7f00:1:: 2002:808:808::1 2620:4f:8000::1 3fff::1 2a00::5efe:10.0.0.1 \
        2a00::200:5efe:10.0.0.1 fe80::1 febf::1 fec0::1 feff::1 ff02::1";
    const PUBLIC: &str = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 \
        172.15.0.1 172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 \
        2606:4700:4700::1111 2001:4860:4860::8888";

    fn allowed_by(reach: Reach, text: &str) -> bool {
        reach.allows(text.parse().unwrap())
    }

    #[test]
    fn every_form_of_address_has_its_class() {
        for text in PUBLIC.split(' ') {
            assert!(allowed_by(Reach::Public, text) && allowed_by(Reach::Named, text), "{text}");
            assert!(!allowed_by(Reach::Private, text), "{text}");
        }
        for text in PRIVATE.split(' ') {
            assert!(!allowed_by(Reach::Public, text), "{text}");
            assert!(allowed_by(Reach::Named, text) && allowed_by(Reach::Private, text), "{text}");
        }
        for text in NEVER.split(' ') {
            for reach in [Reach::Public, Reach::Named, Reach::Private] {
                assert!(!allowed_by(reach, text), "{text} {reach:?}");
            }
        }
    }

    #[test]
    fn literal_addresses_in_urls_are_checked_in_every_spelling() {
        let all = "https://127.0.0.1/mcp https://0x7f000001/ https://2130706433/ \
            https://0177.0.0.1/ https://127.1/ https://127.0.1/ https://0x7f.1/ https://0177.1/ \
            https://017700000001/ https://127.0.0.1./ https://%31%32%37.0.0.1/ \
            https://１２７.0.0.1/ https://①②⑦.⓪.⓪.①/ https://127。0。0。1/ https://2852039166/ \
            https://0xa9.0xfe.0xa9.0xfe/ https://0251.0376.0251.0376/ \
            https://[::ffff:169.254.169.254]/ https://[::169.254.169.254]/ \
            https://[2002:a9fe:a9fe::]/ https://[64:ff9b:1::a9fe:a9fe]/ https://[fd00::1]/ \
            https://[fe80::1]/ https://[fec0::1]/ \
            https://[2001:0:4136:e378:8000:63bf:5601:5601]/ https://[ff02::1]/ https://0/ \
            https://0.0.0.0/ https://[::]/ https://100.64.0.1/ https://198.18.0.1/ \
            https://224.0.0.1/ https://[::1]/ https://[::ffff:7f00:1]/ https://10.0.0.1:8443/ \
            https://169.254.169.254/latest https://[64:ff9b::a9fe:a9fe]/";
        for text in all.split(' ') {
            assert!(Endpoint::public(text).is_err(), "{text}");
        }
        assert!(Endpoint::public("https://1.1.1.1/mcp").is_ok());
        assert!(Endpoint::allowed("http://127.0.0.1:3001/mcp").is_ok());
        assert!(Endpoint::allowed("http://1.1.1.1/mcp").is_err());
        assert!(Endpoint::allowed("https://169.254.169.254/").is_err());
    }

    #[test]
    fn urls_that_are_not_plain_https_are_refused() {
        for text in [
            "http://example.com/", "ftp://example.com/", "https://user:pw@example.com/",
            "https://user@example.com/", "https://example.com/#x", "example.com", "",
            "file:///etc/passwd",
        ] {
            assert!(Endpoint::public(text).is_err(), "{text}");
        }
        assert!(Endpoint::public("https://example.com/mcp?tenant=1").is_ok());
    }
}
