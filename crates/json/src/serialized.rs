//! Values of Rust as text: members in the order of their declaration, strings as in the canonical form.

use std::fmt::{Display, Write as _};

use serde::ser::{
    Error, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer,
};

use super::{strict::RESERVED, write_string};

/// Writes a value whose names are texts. Fails at tuples, bytes, characters, fractions, variants with
/// content, and numbers of a tree, which no record has.
pub fn write_serialized(value: &impl Serialize, out: &mut String) -> Result<(), Unwritable> {
    value.serialize(Writer(out))
}

/// A value has a part of a kind that is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a kind of value that is not written")]
pub struct Unwritable;

impl Error for Unwritable {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

type Written = Result<(), Unwritable>;
type Never = Impossible<(), Unwritable>;

struct Writer<'o>(&'o mut String);

/// Items or members, of which so many are written.
struct Parts<'o> {
    out: &'o mut String,
    count: usize,
    end: char,
}

impl<'o> Parts<'o> {
    fn open(out: &'o mut String, begin: char, end: char) -> Self {
        out.push(begin);
        Self { out, count: 0, end }
    }

    fn next(&mut self) -> &mut String {
        if self.count > 0 {
            self.out.push(',');
        }
        self.count += 1;
        self.out
    }
}

/// Functions for numbers, and for kinds that are not written.
macro_rules! kinds {
    ($($shown:ident $number:ty),*; not $($not:ident ($($given:ty),*) $kind:ty),*) => {
        $(fn $shown(self, number: $number) -> Written {
            write!(self.0, "{number}").map_err(|_| Unwritable)
        })*
        $(fn $not(self, $(_: $given),*) -> Result<$kind, Unwritable> {
            Err(Unwritable)
        })*
    };
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Parts<'o>;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Parts<'o>;
    type SerializeStruct = Parts<'o>;
    type SerializeStructVariant = Never;

    kinds! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64;
        not serialize_f32(f32) (), serialize_f64(f64) (), serialize_char(char) (), serialize_bytes(&[u8]) (),
        serialize_tuple(usize) Never, serialize_tuple_struct(&'static str, usize) Never,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) Never,
        serialize_struct_variant(&'static str, u32, &'static str, usize) Never
    }

    fn serialize_str(self, text: &str) -> Written {
        write_string(text, self.0);
        Ok(())
    }

    fn serialize_none(self) -> Written {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.0.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Written {
        Err(Unwritable)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'o>, Unwritable> {
        Ok(Parts::open(self.0, '[', ']'))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'o>, Unwritable> {
        Ok(Parts::open(self.0, '{', '}'))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts<'o>, Unwritable> {
        // `serde_json` would take its one member for the value.
        if name.starts_with(RESERVED) {
            return Err(Unwritable);
        }
        Ok(Parts::open(self.0, '{', '}'))
    }
}

impl SerializeSeq for Parts<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Written {
        item.serialize(Writer(self.next()))
    }

    fn end(self) -> Written {
        self.out.push(self.end);
        Ok(())
    }
}

impl SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Written {
        name.serialize(Writer(self.next()))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, member: &T) -> Written {
        self.out.push(':');
        member.serialize(Writer(self.out))
    }

    fn end(self) -> Written {
        self.out.push(self.end);
        Ok(())
    }
}

impl SerializeStruct for Parts<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        member: &T,
    ) -> Written {
        // Names of our own need no escapes.
        let out = self.next();
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        member.serialize(Writer(out))
    }

    fn end(self) -> Written {
        self.out.push(self.end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_serde_json_writes_them() {
        let value = json!({"b": ["\u{1}\"é", null, true], "a": {}});
        let mut text = String::from("before ");

        write_serialized(&value, &mut text).unwrap();
        write_serialized(&[Some(-1), None].as_slice(), &mut text).unwrap();

        assert_eq!(text, format!("before {value}[-1,null]"));
    }

    #[test]
    fn kinds_that_no_record_has_are_refused() {
        fn refused(value: impl Serialize) -> Written {
            write_serialized(&value, &mut String::new())
        }
        let all = [
            refused(0.5),
            refused('a'),
            refused((1, 2)),
            refused(json!([1])),
            refused(Ok::<_, ()>(1)),
        ];
        assert!(all.iter().all(|written| *written == Err(Unwritable)), "{all:?}");
    }
}
