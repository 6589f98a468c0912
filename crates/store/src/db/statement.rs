//! Statements: how one is run with its values, and how values and rows stand in the databases.
//!
//! Each macro takes a session and `SQL => values`, in the order of their placeholders; `scalar` before
//! the SQL gives the only column of a row by itself.

use std::{error, fmt};

use portcullis_core::{
    capability::{CapabilityId, ProviderSlug},
    clock::Timestamp,
    id::{
        ApprovalId, ConsentId, EventId, ExportId, GrantId, GroupId, HoldId, MessageId, OrgId,
        PrincipalId, ProviderId, RegistrationId, RequestId, SessionId, TokenId,
    },
    principal::ScopeSet,
    token::CidrList,
    trust::Thumbprint,
};
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::de::DeserializeOwned;
use tokio_postgres::types::{FromSqlOwned, IsNull, ToSql, Type, to_sql_checked};
use tokio_util::bytes::BytesMut;

use crate::error::DriverError;

/// Reads a row.
pub(crate) type Read<T> = fn(Row<'_>) -> Result<T, DriverError>;

/// Number of rows to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Most {
    One,
    All,
}

/// A value in the form in which a statement is sent with it. PostgreSQL has arrays, too.
#[derive(Clone)]
pub(crate) enum Bound {
    Int(Option<i64>),
    Short(i32),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Blobs(Vec<Option<Vec<u8>>>),
    Flags(Vec<bool>),
}

/// Values are never printed.
impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// NULL, of any column.
impl Default for Bound {
    fn default() -> Self {
        Self::Text(None)
    }
}

impl Bound {
    /// The type that PostgreSQL is told.
    pub(crate) const fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::INT8,
            Self::Short(_) => Type::INT4,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
            Self::Ints(_) => Type::INT8_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Blobs(_) => Type::BYTEA_ARRAY,
            Self::Flags(_) => Type::BOOL_ARRAY,
        }
    }
}

impl ToSql for Bound {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn error::Error + Sync + Send>> {
        match self {
            Self::Int(value) => value.to_sql(kind, out),
            Self::Short(value) => value.to_sql(kind, out),
            Self::Text(value) => value.to_sql(kind, out),
            Self::Bytes(value) => value.to_sql(kind, out),
            Self::Ints(values) => values.to_sql(kind, out),
            Self::Texts(values) => values.to_sql(kind, out),
            Self::Blobs(values) => values.to_sql(kind, out),
            Self::Flags(values) => values.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // It is sent with its own.
        true
    }

    to_sql_checked!();
}

impl rusqlite::ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Int(value) => rusqlite::ToSql::to_sql(value),
            Self::Short(value) => rusqlite::ToSql::to_sql(value),
            Self::Text(value) => rusqlite::ToSql::to_sql(value),
            Self::Bytes(value) => rusqlite::ToSql::to_sql(value),
            Self::Ints(_) | Self::Texts(_) | Self::Blobs(_) | Self::Flags(_) => {
                Err(rusqlite::Error::ToSqlConversionFailure("SQLite has no arrays".into()))
            }
        }
    }
}

/// A value of a statement.
pub(crate) trait Value {
    /// The value as it is sent.
    fn bound(self) -> Bound;
}

/// A value that may be absent.
pub(crate) trait Nullable: Value {
    /// NULL in its column.
    fn null() -> Bound;
}

/// Types of values and their stored form.
macro_rules! stored {
    ($($type:ty => $form:ident: |$value:ident| $body:expr;)+) => {
        $(impl Value for $type {
            fn bound(self) -> Bound {
                let $value = self;
                Bound::$form(Some($body))
            }
        }
        impl Nullable for $type {
            fn null() -> Bound {
                Bound::$form(None)
            }
        })+
    };
    (texts: $($type:ident),+) => {
        stored!($($type => Text: |value| value.to_string();)+);
    };
}

stored!(texts: ApprovalId, ConsentId, EventId, ExportId, GrantId, GroupId, HoldId, MessageId,
    OrgId, PrincipalId, ProviderId, RegistrationId, RequestId, ScopeSet, SessionId, Thumbprint,
    TokenId);
stored! {
    Timestamp => Int: |moment| moment.as_micros();
    bool => Int: |flag| flag.into();
    i64 => Int: |value| value;
    u32 => Int: |value| value.into();
    u64 => Int: |value| value.try_into().unwrap_or(i64::MAX);
    usize => Int: |value| value.try_into().unwrap_or(i64::MAX);
    String => Text: |text| text;
    &str => Text: |text| text.to_owned();
    Vec<u8> => Bytes: |bytes| bytes;
    &[u8] => Bytes: |bytes| bytes.to_vec();
}

impl Value for i32 {
    fn bound(self) -> Bound {
        Bound::Short(self)
    }
}

impl Value for Bound {
    fn bound(self) -> Bound {
        self
    }
}

impl<const N: usize> Value for [u8; N] {
    fn bound(self) -> Bound {
        self.as_slice().bound()
    }
}

impl<T: Value + Clone> Value for &T {
    fn bound(self) -> Bound {
        self.clone().bound()
    }
}

impl<T: Nullable + Clone> Nullable for &T {
    fn null() -> Bound {
        T::null()
    }
}

impl<T: Nullable> Value for Option<T> {
    fn bound(self) -> Bound {
        self.map_or_else(T::null, T::bound)
    }
}

/// A value of an array of PostgreSQL.
pub(crate) trait Element: Sized {
    fn array(values: Vec<Self>) -> Bound;
}

impl<T: Element> Value for Vec<T> {
    fn bound(self) -> Bound {
        T::array(self)
    }
}

/// Elements and the arrays of them.
macro_rules! elements {
    ($($type:ty => $form:ident: |$value:ident| $body:expr;)+) => {
        $(impl Element for $type {
            fn array(values: Vec<Self>) -> Bound {
                Bound::$form(values.into_iter().map(|$value| $body).collect())
            }
        })+
    };
}

elements! {
    i64 => Ints: |value| Some(value);
    Option<i64> => Ints: |value| value;
    String => Texts: |text| Some(text);
    Option<String> => Texts: |text| text;
    &str => Texts: |text| Some(text.to_owned());
    Option<&str> => Texts: |text| text.map(str::to_owned);
    Vec<u8> => Blobs: |bytes| Some(bytes);
    Option<Vec<u8>> => Blobs: |bytes| bytes;
    &[u8] => Blobs: |bytes| Some(bytes.to_vec());
    bool => Flags: |flag| flag;
}

/// A type that a column is read as.
pub(crate) trait Column: Sized {
    /// The type that a driver gives.
    type Stored: FromSql + FromSqlOwned;
    /// Reads back a stored value; `None` if it is unreadable.
    fn of_stored(stored: Self::Stored) -> Option<Self>;
}

/// Columns and how they are read back.
macro_rules! columns {
    ($($type:ty => $stored:ty: |$value:ident| $body:expr;)+) => {
        $(impl $crate::db::Column for $type {
            type Stored = $stored;
            fn of_stored($value: $stored) -> Option<Self> {
                $body
            }
        })+
    };
    (texts: $($type:ident),+ $(,)?) => {
        $crate::db::columns!($($type => String: |text| text.parse().ok();)+);
    };
}
pub(crate) use columns;

columns!(texts: ApprovalId, CidrList, ConsentId, EventId, ExportId, GrantId, GroupId, HoldId,
    MessageId, OrgId, PrincipalId, ProviderId, ProviderSlug, RegistrationId, RequestId, ScopeSet,
    SessionId, Thumbprint, TokenId, CapabilityId);
columns! {
    Timestamp => i64: |micros| Some(Self::from_micros(micros));
    bool => Flag: |flag| Some(flag.0);
    i32 => i32: |number| Some(number);
    i64 => i64: |number| Some(number);
    u32 => i64: |number| number.try_into().ok();
    u64 => i64: |number| number.try_into().ok();
    usize => i64: |number| number.try_into().ok();
    String => String: |text| Some(text);
    Vec<u8> => Vec<u8>: |bytes| Some(bytes);
}

impl<T: Column> Column for Option<T> {
    type Stored = Option<T::Stored>;

    fn of_stored(stored: Self::Stored) -> Option<Self> {
        match stored {
            None => Some(None),
            Some(stored) => T::of_stored(stored).map(Some),
        }
    }
}

/// A truth, or a number that is 0 where it is false.
pub(crate) struct Flag(bool);

impl FromSql for Flag {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        bool::column_result(value).map(Self)
    }
}

impl<'a> tokio_postgres::types::FromSql<'a> for Flag {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn error::Error + Sync + Send>> {
        if *kind == Type::BOOL {
            return bool::from_sql(kind, raw).map(Self);
        }
        i64::from_sql(kind, raw).map(|number| Self(number != 0))
    }

    fn accepts(kind: &Type) -> bool {
        [Type::BOOL, Type::INT8].contains(kind)
    }
}

/// A row of either database.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// The value of a column, which is named with or without its table: `orgs.id`.
    pub(crate) fn get<T: Column>(self, place: &'static str) -> Result<T, DriverError> {
        let name = place.rsplit_once('.').map_or(place, |(_, name)| name);
        let stored = match self {
            Self::Sqlite(row) => row.get(name).map_err(|error| error.to_string()),
            Self::Postgres(row) => row.try_get(name).map_err(|error| error.to_string()),
        };
        T::of_stored(stored.map_err(DriverError::Column)?).ok_or(DriverError::Corrupt(place))
    }

    /// Value of the JSON in a column.
    pub(crate) fn json<T: DeserializeOwned>(self, place: &'static str) -> Result<T, DriverError> {
        let text: String = self.get(place)?;
        serde_json::from_str(&text).map_err(|_| DriverError::Corrupt(place))
    }

    /// The value of the column at this place.
    pub(crate) fn at<T: Column>(self, place: usize) -> Result<T, DriverError> {
        let stored = match self {
            Self::Sqlite(row) => row.get(place).map_err(|error| error.to_string()),
            Self::Postgres(row) => row.try_get(place).map_err(|error| error.to_string()),
        };
        T::of_stored(stored.map_err(DriverError::Column)?).ok_or(DriverError::Corrupt("a column"))
    }
}

/// A type that a whole row is read as.
pub(crate) trait FromRow: Sized {
    fn from_row(row: Row<'_>) -> Result<Self, DriverError>;
}

macro_rules! tuples {
    ($(($($name:ident $place:literal),+))+) => {
        $(impl<$($name: Column),+> FromRow for ($($name,)+) {
            fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
                Ok(($(row.at::<$name>($place)?,)+))
            }
        })+
    };
}
tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// The only column of a row.
pub(crate) fn scalar<T: Column>(row: Row<'_>) -> Result<T, DriverError> {
    row.at(0)
}

/// All values of a row of SQLite, whatever their types.
pub(crate) fn cells(row: Row<'_>) -> Result<Vec<Bound>, DriverError> {
    let Row::Sqlite(row) = row else { return Ok(Vec::new()) };
    let cell = |place| {
        Ok(match row.get_ref(place)? {
            ValueRef::Null => Bound::default(),
            ValueRef::Integer(number) => Bound::Int(Some(number)),
            ValueRef::Text(_) => Bound::Text(Some(row.get(place)?)),
            ValueRef::Blob(bytes) => Bound::Bytes(Some(bytes.to_vec())),
            ValueRef::Real(_) => return Err(DriverError::Column("a fraction".to_owned())),
        })
    };
    (0..row.as_ref().column_count()).map(cell).collect()
}

/// The values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::bound($value)),*] };
}

/// Runs a statement, and gives the number of rows that it changed.
macro_rules! run {
    ($conn:ident, $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $conn.run($sql, $crate::db::values![$($($value),+)?]).await?
    };
}

/// Reads the rows of a statement by one method of a session.
macro_rules! rows {
    ($method:ident, $conn:ident, scalar $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $crate::db::rows!(@ $method, $conn, $crate::db::scalar, $sql $(=> $($value),+)?)
    };
    ($method:ident, $conn:ident, $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $crate::db::rows!(@ $method, $conn, $crate::db::FromRow::from_row, $sql $(=> $($value),+)?)
    };
    (@ $method:ident, $conn:ident, $read:expr, $sql:expr $(=> $($value:expr),+)?) => {
        $conn.$method($read, $sql, $crate::db::values![$($($value),+)?]).await?
    };
}

/// The row that a statement finds, if any.
macro_rules! find {
    ($($statement:tt)+) => { $crate::db::rows!(find, $($statement)+) };
}

/// The one row of a statement.
macro_rules! one {
    ($($statement:tt)+) => { $crate::db::rows!(one, $($statement)+) };
}

/// Every row of a statement.
macro_rules! all {
    ($($statement:tt)+) => { $crate::db::rows!(all, $($statement)+) };
}

pub(crate) use {all, find, one, rows, run, values};
