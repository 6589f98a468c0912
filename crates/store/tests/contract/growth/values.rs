//! Rows that tables are filled with, and the values of statements that ask for one of them.

use super::FEW;
use crate::{given::NOW, statements::SMALL};

/// Columns that hold JSON.
const LISTS: [&str; 4] = ["groups", "provisioned_groups", "lineage", "said"];

/// Words that statements look for, by the column.
const WORDS: [(&str, &[&str]); 8] = [
    ("kind", &["user", "refresh", "service"]),
    ("status", &["pending", "approved", "connected", "ready"]),
    ("method", &["token", "key", "login"]),
    ("type", &["mcp.invocation", "token.issued"]),
    ("decision", &["allow", "deny"]),
    ("dlp_result", &["passed", "redacted"]),
    ("outcome", &["success", "failed"]),
    ("role", &["admin", "member"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Bytes,
}

impl From<String> for Kind {
    fn from(name: String) -> Self {
        match name.as_str() {
            "TEXT" | "text" => Self::Text,
            "INTEGER" | "bigint" => Self::Number,
            "BLOB" | "bytea" => Self::Bytes,
            other => panic!("another type of column: {other}"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) table: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
}

/// The row whose values statements ask for.
pub(super) const ASKED: i64 = 5;

/// Value of a row's column in SQL, by the number `n` of the row.
fn value_of(column: &Column, rows: u32, is_sqlite: bool) -> String {
    let Column { table, name, kind, is_nullable } = column;
    let text = if is_sqlite { "'x' || printf('%06d', n)" } else { "'x' || lpad(n::text, 6, '0')" };
    let words = WORDS.iter().find(|(of, _)| of == name && *kind == Kind::Text);
    let value = match (table.as_str(), name.as_str(), kind) {
        (_, "org_id", _) => return "'org'".to_owned(),
        ("orgs", "id", _) => format!("CASE n WHEN {ASKED} THEN 'org' ELSE {text} END"),
        ("audit_floor" | "audit_heads", _, Kind::Number) => rows.to_string(),
        // All begin as asked.
        ("search_words", "word", _) => format!("'x{ASKED:06} ' || {text}"),
        (_, name, _) if LISTS.contains(&name) => format!("'[\"' || {text} || '\"]'"),
        (_, "kind", Kind::Number) => "n % 10 + 1".to_owned(),
        (_, name, Kind::Number) if name.ends_with("_at") => format!("{} + n", NOW.as_micros()),
        (_, _, Kind::Number) => "n".to_owned(),
        (_, _, Kind::Text) => words.map_or_else(
            || text.to_owned(),
            |(_, words)| {
                let cases = words.iter().enumerate();
                let cases = cases.map(|(place, word)| format!("WHEN {place} THEN '{word}' "));
                format!("CASE n % {} {}END", words.len(), cases.collect::<String>())
            },
        ),
        (_, _, Kind::Bytes) if is_sqlite => format!("CAST({text} AS BLOB)"),
        (_, _, Kind::Bytes) => format!("convert_to({text}, 'UTF8')"),
    };
    // What has ended says when: every other row has not.
    if *is_nullable && *kind == Kind::Number {
        return format!("CASE n % 2 WHEN 0 THEN {value} END");
    }
    value
}

/// Statements that fill the tables.
pub(super) fn filling(columns: &[Column], rows: u32, is_sqlite: bool) -> Vec<String> {
    columns
        .chunk_by(|one, next| one.table == next.table)
        .map(|columns| {
            let table = &columns[0].table;
            let number = if SMALL.iter().any(|(small, _)| small == table) { FEW } else { rows };
            let names: Vec<_> = columns.iter().map(|it| format!("\"{}\"", it.name)).collect();
            let values: Vec<_> = columns.iter().map(|it| value_of(it, rows, is_sqlite)).collect();
            format!(
                "INSERT INTO {table} ({}) WITH RECURSIVE numbers (n) AS \
                 (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {number}) \
                 SELECT {} FROM numbers WHERE TRUE ON CONFLICT DO NOTHING",
                names.join(", "),
                values.join(", "),
            )
        })
        .collect()
}

/// Use of a value of a statement.
pub(super) enum Use<'a> {
    /// Comparison with this column, or its new value.
    Column(&'a Column),
    /// Number of rows.
    Rows,
    /// List in JSON.
    List,
    Unknown,
}

/// The use of a statement's `place`th value, as far as that can be seen.
pub(super) fn use_of<'a>(sql: &str, place: usize, columns: &'a [Column]) -> Use<'a> {
    let named = |name: &str| {
        let mut those = columns.iter().filter(|it| sql.contains(it.table.as_str()));
        those.find(|it| it.name == name).map(Use::Column)
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let name = format!("${place}");
    for (at, _) in sql.match_indices(&name) {
        let after = &sql[at + name.len()..];
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let before = sql[..at].trim_end_matches(|c: char| " \n(=<>|+-".contains(c));
        let before = ["IS DISTINCT FROM", "IS NOT DISTINCT FROM", "IS NOT", "IS", "NOT IN", "IN"]
            .iter()
            .find_map(|it| before.strip_suffix(it))
            .map_or(before, str::trim_end);
        // The first of `COALESCE(column, $1)`.
        let before = before.strip_suffix(',').filter(|it| is_coalesced(it)).unwrap_or(before);
        let (_, last) = before.rsplit_once(|c| !is_word(c)).unwrap_or(("", before));
        let next = after.trim_start_matches([' ', '=', '<', '>']);
        let next = &next[..next.find(|c| !is_word(c) && c != '.').unwrap_or(next.len())];
        let compared = if after.trim_start().starts_with(['=', '<', '>']) { next } else { "" };
        return match last {
            "LIMIT" | "OFFSET" => Use::Rows,
            "json_each" | "jsonb_array_elements" | "jsonb_array_elements_text" => Use::List,
            _ => {
                let column = named(last).or_else(|| named(compared.rsplit('.').next()?));
                let Some(column) = column else { continue };
                column
            }
        };
    }
    inserted(sql, &name).and_then(named).unwrap_or(Use::Unknown)
}

/// Returns true for a text that ends in `COALESCE(column`.
fn is_coalesced(text: &str) -> bool {
    let open = text.trim_end_matches(|c: char| c.is_alphanumeric() || "_.".contains(c));
    open.ends_with("COALESCE(")
}

/// The column that a value is put into.
fn inserted<'a>(sql: &'a str, value: &str) -> Option<&'a str> {
    let (_, inserted) = sql.split_once("INSERT INTO ")?;
    let (names, values) = inserted.split_once('(')?.1.split_once(')')?;
    let values = values.split_once("VALUES").or_else(|| values.split_once("SELECT"))?.1;
    let values = values.trim_start().trim_start_matches('(').split([')', 'W', 'F']).next()?;
    let position = values.split(',').position(|it| it.trim() == value)?;
    names.split(',').nth(position).map(str::trim)
}

/// Value that a statement is given: of a row that is there, or a new one if it inserts.
#[derive(Debug)]
pub(super) enum Given {
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

pub(super) fn given(sql: &str, place: usize, columns: &[Column]) -> Given {
    let asked = if sql.contains("INSERT INTO") { "new".to_owned() } else { format!("x{ASKED:06}") };
    match use_of(sql, place, columns) {
        Use::Rows => Given::Number(ASKED),
        Use::List if sql.contains("value ->>") => {
            let row = ["\"00\"", "5"].map(|it| [it; 10]).concat().join(",");
            Given::Text(format!("[[{row}]]"))
        }
        Use::List if sql.contains("CAST(value AS") => Given::Text(format!("[{ASKED}]")),
        Use::List => Given::Text(format!("[{asked:?}]")),
        Use::Column(Column { name, .. }) if name == "org_id" => Given::Text("org".to_owned()),
        Use::Column(Column { name, kind: Kind::Number, .. }) => Given::Number(match name {
            name if name.ends_with("_at") => NOW.as_micros() + ASKED,
            _ => ASKED,
        }),
        Use::Column(Column { name, kind: Kind::Text, .. }) => {
            let words = WORDS.iter().find(|(of, _)| of == name);
            Given::Text(words.map_or(asked, |(_, words)| words[1].to_owned()))
        }
        Use::Column(Column { kind: Kind::Bytes, .. }) => Given::Bytes(asked.into_bytes()),
        Use::Unknown => Given::Text(asked),
    }
}

pub(super) fn values_of(sql: &str) -> usize {
    (1..100).take_while(|place| sql.contains(&format!("${place}"))).count()
}

pub(super) type ColumnRow = (String, String, String, bool);

pub(super) fn read_columns(rows: Vec<ColumnRow>) -> Vec<Column> {
    let rows = rows.into_iter();
    rows.map(|(table, name, kind, is_nullable)| Column {
        table,
        name,
        kind: Kind::from(kind),
        is_nullable,
    })
    .collect()
}
