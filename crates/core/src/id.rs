//! Ids: `<prefix>_<ULID>`, time-ordered, URL-safe, matched case-sensitively.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use ulid::Ulid;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Object, ObjectBuilder, RefOr, Schema, Type, schema::SchemaType},
};

use crate::{clock::Clock, random, random::Random};

/// Makes ids from the moment of a clock and a random source.
#[derive(Debug, Clone, Copy)]
pub struct Ids<'a> {
    /// Gives the first 48 bits.
    pub clock: &'a dyn Clock,
    /// Gives the other 80 bits.
    pub random: &'a dyn Random,
}

impl Ids<'_> {
    fn ulid(self) -> Ulid {
        let mut low = [0; 16];
        low[6..].copy_from_slice(&random::bytes::<10>(self.random));
        Ulid::from_parts(self.clock.now().as_millis(), u128::from_be_bytes(low))
    }
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form `{prefix}_` and 26 characters")]
pub struct IdError {
    prefix: &'static str,
}

fn parse_ulid(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    let error = IdError { prefix };
    let body = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).ok_or(error)?;
    let ulid = Ulid::from_string(body).map_err(|_| error)?;
    // Crockford decoding forgives lower case and look-alikes; ids are matched exactly.
    let mut canonical = [0; ulid::ULID_LEN];
    if ulid.array_to_str(&mut canonical) == body { Ok(ulid) } else { Err(error) }
}

/// The text of an id, without memory for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdText {
    bytes: [u8; LONGEST],
    length: usize,
}

/// Bytes of the longest id: a prefix of three letters, `_` and a ULID.
const LONGEST: usize = 4 + ulid::ULID_LEN;

impl IdText {
    fn of(prefix: &str, ulid: Ulid) -> Self {
        let mut text = Self { bytes: [0; LONGEST], length: 0 };
        text.push(prefix);
        text.push("_");
        text.push(ulid.array_to_str(&mut [0; ulid::ULID_LEN]));
        text
    }

    fn push(&mut self, part: &str) {
        let end = self.length + part.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(part.as_bytes());
            self.length = end;
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..self.length).unwrap_or_default();
        str::from_utf8(text).unwrap_or_default()
    }
}

/// The schema of ids that begin with one of `prefixes`, which `|` separates.
fn id_schema(prefixes: &str) -> RefOr<Schema> {
    let first = prefixes.split('|').next().unwrap_or_default();
    let text: Object = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .pattern(Some(format!("^({prefixes})_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$")))
        .examples([format!("{first}_01M754BKTKX1YB8Q05NMW9TP4G")])
        .into();
    text.into()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Prefix of every id of this kind, before the `_`.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, ordered by the moment it was made.
            #[must_use]
            pub fn new(ids: Ids<'_>) -> Self {
                Self(ids.ulid())
            }

            /// Its text.
            #[must_use]
            pub fn text(self) -> IdText {
                IdText::of($prefix, self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text().as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_ulid(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.text().as_str())
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                id_schema($prefix)
            }
        }

        impl ToSchema for $name {}

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let text = String::deserialize(reader)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

id!(
    /// A tenant.
    OrgId, "org"
);
id!(
    /// A token; the id may be shown, the token itself may not.
    TokenId, "tok"
);
id!(
    /// A login of a person in a browser.
    SessionId, "ses"
);
id!(
    /// A chain of tokens that are revoked together.
    GrantId, "grn"
);
id!(
    /// A connection to an upstream MCP server.
    ProviderId, "prv"
);
id!(
    /// An audit event.
    EventId, "evt"
);
id!(
    /// A legal hold on events.
    HoldId, "hld"
);
id!(
    /// A message to a webhook.
    MessageId, "msg"
);
id!(
    /// A request that people approve a call.
    ApprovalId, "apr"
);
id!(
    /// The consent of a person to what a client asked for.
    ConsentId, "con"
);
id!(
    /// A group that an identity provider keeps.
    GroupId, "grp"
);
id!(
    /// The registration of a client.
    RegistrationId, "reg"
);
id!(
    /// An export of the audit log.
    ExportId, "exp"
);
id!(
    /// One HTTP request.
    RequestId, "req"
);

impl RequestId {
    /// 64 of its random bits, to choose some requests out of many by.
    #[must_use]
    pub const fn lot(self) -> u64 {
        match self.0.to_bytes().last_chunk() {
            Some(low) => u64::from_be_bytes(*low),
            None => 0,
        }
    }
}

crate::words! {
    /// Kind of a principal: a person or a program.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PrincipalKind {
        /// A person: `usr_…`, tokens `mcp_live_…`.
        User = "user",
        /// A program: `sa_…`, tokens `svc_live_…`.
        Service = "service",
    }
}

impl PrincipalKind {
    /// Prefix of the ids of its principals, before the `_`.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "usr",
            Self::Service => "sa",
        }
    }
}

/// A user (`usr_…`) or a service account (`sa_…`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalId {
    kind: PrincipalKind,
    ulid: Ulid,
}

impl PartialSchema for PrincipalId {
    fn schema() -> RefOr<Schema> {
        id_schema("usr|sa")
    }
}

impl ToSchema for PrincipalId {}

impl PrincipalId {
    /// A new id for a principal of this kind.
    #[must_use]
    pub fn new(kind: PrincipalKind, ids: Ids<'_>) -> Self {
        Self { kind, ulid: ids.ulid() }
    }

    /// An id that no principal has.
    #[must_use]
    pub const fn nobody() -> Self {
        Self { kind: PrincipalKind::User, ulid: Ulid::nil() }
    }

    /// Person or program.
    #[must_use]
    pub const fn kind(self) -> PrincipalKind {
        self.kind
    }

    /// Its text.
    #[must_use]
    pub fn text(self) -> IdText {
        IdText::of(self.kind.prefix(), self.ulid)
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl fmt::Debug for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PrincipalId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let kind =
            if text.starts_with("sa_") { PrincipalKind::Service } else { PrincipalKind::User };
        Ok(Self { kind, ulid: parse_ulid(text, kind.prefix())? })
    }
}

impl<'de> Deserialize<'de> for PrincipalId {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for PrincipalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ULID: &str = "01M754BKTKX1YB8Q05NMW9TP4G";

    #[test]
    fn an_id_reads_back_what_it_wrote() {
        let text = format!("org_{ULID}");
        let id: OrgId = text.parse().unwrap();

        assert_eq!(id.to_string(), text);
    }

    #[test]
    fn a_principal_id_tells_its_kind() {
        let user: PrincipalId = format!("usr_{ULID}").parse().unwrap();
        let service: PrincipalId = format!("sa_{ULID}").parse().unwrap();

        assert_eq!(user.kind(), PrincipalKind::User);
        assert_eq!(service.kind(), PrincipalKind::Service);
        assert_eq!(service.to_string(), format!("sa_{ULID}"));
    }

    #[test]
    fn look_alikes_of_an_id_are_refused() {
        let lower = format!("org_{}", ULID.to_lowercase());
        let twin = format!("org_{}", ULID.replace('1', "I"));
        let other = format!("evt_{ULID}");
        for text in ["", "org_", ULID, lower.as_str(), twin.as_str(), other.as_str(), "org_🦀"] {
            assert!(text.parse::<OrgId>().is_err(), "{text}");
        }
    }
}
