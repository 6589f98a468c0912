//! Statements: how one is run with its values, and how a value stands in the databases.
//!
//! Each macro takes a connection and `SQL => values`, in the order of their placeholders; `scalar` before
//! the SQL gives the only column of a row by itself.

use portcullis_core::{
    clock::Timestamp,
    id::{
        ApprovalId, ConsentId, EventId, ExportId, GrantId, GroupId, HoldId, MessageId, OrgId,
        PrincipalId, ProviderId, RegistrationId, RequestId, SessionId, TokenId,
    },
    principal::ScopeSet,
    trust::Thumbprint,
};

/// A value of a statement.
pub(crate) trait Value {
    /// Form in which both databases keep it.
    type Stored;

    /// The value in that form.
    fn stored(self) -> Self::Stored;
}

/// Values and their stored form.
macro_rules! values {
    ($($type:ty => $stored:ty: |$value:ident| $body:expr;)+) => {
        $(impl Value for $type {
            type Stored = $stored;
            fn stored(self) -> $stored {
                let $value = self;
                $body
            }
        })+
    };
    (texts: $($type:ident),+) => {
        values!($($type => String: |value| value.to_string();)+);
    };
}

values!(texts: ApprovalId, ConsentId, EventId, ExportId, GrantId, GroupId, HoldId, MessageId,
    OrgId, PrincipalId, ProviderId, RegistrationId, RequestId, ScopeSet, SessionId, Thumbprint,
    TokenId);
values! {
    Timestamp => i64: |moment| moment.as_micros();
    bool => i64: |flag| flag.into();
    i32 => i32: |value| value;
    i64 => i64: |value| value;
    u32 => i64: |value| value.into();
    String => String: |text| text;
    Vec<u8> => Vec<u8>: |bytes| bytes;
}

impl<'a, T: ?Sized> Value for &'a T {
    type Stored = &'a T;
    fn stored(self) -> &'a T {
        self
    }
}

impl<T: Value> Value for Option<T> {
    type Stored = Option<T::Stored>;
    fn stored(self) -> Option<T::Stored> {
        self.map(T::stored)
    }
}

/// A statement with its values.
macro_rules! bound {
    ($query:expr $(, $value:expr)*) => {
        $query$(.bind($crate::db::Value::stored($value)))*
    };
}

/// Runs a statement, and gives the number of rows that it changed.
macro_rules! run {
    ($conn:ident, $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $crate::db::bound!(sqlx::query($sql) $($(, $value)+)?)
            .execute(&mut *$conn)
            .await?
            .rows_affected()
    };
}

/// Reads the rows of a statement by one method of sqlx.
macro_rules! rows {
    ($method:ident, $conn:ident, scalar $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $crate::db::bound!(sqlx::query_scalar($sql) $($(, $value)+)?).$method(&mut *$conn).await?
    };
    ($method:ident, $conn:ident, $sql:expr $(=> $($value:expr),+ $(,)?)?) => {
        $crate::db::bound!(sqlx::query_as($sql) $($(, $value)+)?).$method(&mut *$conn).await?
    };
}

/// The row that a statement finds, if any.
macro_rules! find {
    ($($statement:tt)+) => { $crate::db::rows!(fetch_optional, $($statement)+) };
}

/// The one row of a statement.
macro_rules! one {
    ($($statement:tt)+) => { $crate::db::rows!(fetch_one, $($statement)+) };
}

/// Every row of a statement.
macro_rules! all {
    ($($statement:tt)+) => { $crate::db::rows!(fetch_all, $($statement)+) };
}

pub(crate) use {all, bound, find, one, rows, run};
