//! Encodes the members of a record as journal fields, and decodes them: one list for each record serves both ways,
//! and the schema's document.

pub mod field;

use std::borrow::Cow;
use std::str::FromStr;

use journal::EntryBuf;

use crate::histogram::Sketch;
use crate::ids::ConnId;
use crate::metrics::{Counters, Field, Metric, Unit};
use crate::text::keywords::Keyword;

/// Why an entry cannot be decoded as a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A field that every record of its kind has is not there.
    #[error("field {0} is missing")]
    Missing(Cow<'static, str>),
    #[error("field {0} is malformed")]
    Malformed(Cow<'static, str>),
    /// A later version of tlsdash wrote it.
    #[error("written by a newer tlsdash (schema {0}); update this one")]
    Newer(u64),
    /// A later version of tlsdash may have written it.
    #[error("field {0} has an unknown word")]
    UnknownWord(Cow<'static, str>),
}

pub trait FieldSource {
    fn text(&self, name: &str) -> Option<&str>;
}

impl FieldSource for journal::Entry {
    fn text(&self, name: &str) -> Option<&str> {
        Self::text(self, name)
    }
}

impl FieldSource for EntryBuf {
    fn text(&self, name: &str) -> Option<&str> {
        self.iter().find(|(key, _)| *key == name).and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// A record, or a part of a record with several fields.
pub(crate) trait WireFields: Sized {
    /// True for a part of one kind of record, whose fields the document lists with it.
    const IS_PART: bool;
    fn put_all(&self, out: &mut EntryBuf);
    fn get_all(from: &dyn FieldSource) -> Result<Self, DecodeError>;
    fn fields() -> Vec<Field>;
}

impl<W: WireFields> WireFields for Box<W> {
    const IS_PART: bool = W::IS_PART;

    fn put_all(&self, out: &mut EntryBuf) {
        (**self).put_all(out);
    }

    fn get_all(from: &dyn FieldSource) -> Result<Self, DecodeError> {
        W::get_all(from).map(Self::new)
    }

    fn fields() -> Vec<Field> {
        W::fields()
    }
}

/// One member of a record, in the field that is named beside it.
pub(crate) trait WireField: Sized {
    fn put(&self, field: &'static Field, out: &mut EntryBuf);
    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError>;
    fn describe(field: &'static Field, into: &mut Vec<Field>) {
        into.push(field.clone());
    }
}

/// Marks a member with fields of its own type.
pub(crate) static FAMILY: Field =
    Field { name: Cow::Borrowed(""), unit: Unit::Text, example: "", meaning: Cow::Borrowed("") };

/// Declares a record with the field of each member; `@part` a part of a record, which can be a member of it, and `@impl` does so for a struct declared
/// elsewhere.
macro_rules! wire {
    (@impl $record:ident { $($members:tt)* }) => {
        wire! { @as false $record { $($members)* } }
    };
    (@as $is_part:literal $record:ident { $($member:ident: $type:ty = $field:expr,)* }) => {
        impl $crate::wire::WireFields for $record {
            const IS_PART: bool = $is_part;

            fn put_all(&self, out: &mut journal::EntryBuf) {
                $($crate::wire::WireField::put(&self.$member, $field, out);)*
            }

            fn get_all(from: &dyn $crate::wire::FieldSource) -> Result<Self, $crate::wire::DecodeError> {
                Ok(Self { $($member: $crate::wire::WireField::get($field, from)?,)* })
            }

            fn fields() -> Vec<$crate::metrics::Field> {
                let mut fields = Vec::new();
                $(<$type as $crate::wire::WireField>::describe($field, &mut fields);)*
                fields
            }
        }
    };
    (@part $(#[$meta:meta])* pub struct $record:ident $members:tt) => {
        wire! { @declare true $(#[$meta])* pub struct $record $members }

        impl $crate::wire::WireField for $record {
            fn put(&self, _: &'static $crate::metrics::Field, out: &mut journal::EntryBuf) {
                $crate::wire::WireFields::put_all(self, out);
            }

            fn get(
                _: &'static $crate::metrics::Field,
                from: &dyn $crate::wire::FieldSource,
            ) -> Result<Self, $crate::wire::DecodeError> {
                $crate::wire::WireFields::get_all(from)
            }

            fn describe(_: &'static $crate::metrics::Field, into: &mut Vec<$crate::metrics::Field>) {
                into.extend(<Self as $crate::wire::WireFields>::fields());
            }
        }
    };
    (@declare $is_part:literal $(#[$meta:meta])* pub struct $record:ident {
        $($(#[$doc:meta])* pub $member:ident: $type:ty = $field:expr,)*
    }) => {
        $(#[$meta])*
        pub struct $record {
            $($(#[$doc])* pub $member: $type,)*
        }
        wire! { @as $is_part $record { $($member: $type = $field,)* } }
    };
    ($($declaration:tt)*) => {
        wire! { @declare false $($declaration)* }
    };
}
pub(crate) use wire;

pub(crate) fn malformed(name: impl Into<Cow<'static, str>>) -> DecodeError {
    DecodeError::Malformed(name.into())
}

/// A missing number is 0: later versions add counters that older journals lack.
pub(crate) fn number<T: FromStr + Default>(name: &str, from: &dyn FieldSource) -> Result<T, DecodeError> {
    from.text(name)
        .map_or_else(|| Ok(T::default()), |text| text.parse().map_err(|_| malformed(name.to_owned())))
}

macro_rules! plain_numbers {
    ($($type:ty)*) => {$(
        impl WireField for $type {
            fn put(&self, field: &'static Field, out: &mut EntryBuf) {
                out.push_display(&field.name, self);
            }

            fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
                number(&field.name, from)
            }
        }
    )*};
}
plain_numbers!(u64 i64);

impl WireField for f64 {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        out.push_display(&field.name, self);
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let value: Self = number(&field.name, from)?;
        value.is_finite().then_some(value).ok_or_else(|| malformed(field.name.clone()))
    }
}

/// An unknown number has no field.
impl WireField for Option<f64> {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if let Some(value) = self {
            value.put(field, out);
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        from.text(&field.name).map(|_| f64::get(field, from)).transpose()
    }
}

impl WireField for bool {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        out.push(&field.name, if *self { b"1" } else { b"0" });
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        match from.text(&field.name) {
            Some("1") => Ok(true),
            Some("0") | None => Ok(false),
            Some(_) => Err(malformed(field.name.clone())),
        }
    }
}

/// Empty text needs no field. Text read from a journal is cleaned again: a journal is trusted no more than a peer.
impl WireField for String {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.is_empty() {
            out.push(&field.name, self.as_bytes());
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        Ok(from.text(&field.name).map(crate::text::clean::text).unwrap_or_default())
    }
}

/// Reads a field that every record of its kind has.
pub(crate) fn get_parsed<T: FromStr>(
    field: &'static Field,
    from: &dyn FieldSource,
) -> Result<T, DecodeError> {
    let text = from.text(&field.name).ok_or_else(|| DecodeError::Missing(field.name.clone()))?;
    text.parse().map_err(|_| malformed(field.name.clone()))
}

impl<K: Keyword> WireField for K {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        out.push_display(&field.name, self);
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let text = from.text(&field.name).ok_or_else(|| DecodeError::Missing(field.name.clone()))?;
        text.parse().map_err(|_| DecodeError::UnknownWord(field.name.clone()))
    }
}

impl WireField for ConnId {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        self.0.put(field, out);
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        get_parsed(field, from).map(Self)
    }
}

impl<W: WireFields> WireField for Option<W> {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        self.is_some().put(field, out);
        if let Some(record) = self {
            record.put_all(out);
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        bool::get(field, from)?.then(|| W::get_all(from)).transpose()
    }

    fn describe(field: &'static Field, into: &mut Vec<Field>) {
        into.push(field.clone());
        if W::IS_PART {
            into.extend(W::fields());
        }
    }
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(
    field: &'static Field,
    text: &str,
) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|_| malformed(field.name.clone()))
}

/// An empty value needs no field.
macro_rules! absent_if_empty {
    ($($type:ty)*) => {$(
        impl $crate::wire::WireField for $type {
            fn put(&self, field: &'static $crate::metrics::Field, out: &mut journal::EntryBuf) {
                if !self.is_empty() {
                    out.push_display(&field.name, self);
                }
            }

            fn get(
                field: &'static $crate::metrics::Field,
                from: &dyn $crate::wire::FieldSource,
            ) -> Result<Self, $crate::wire::DecodeError> {
                from.text(&field.name).map_or_else(
                    || Ok(Self::default()),
                    |text| text.parse().map_err(|_| $crate::wire::malformed(field.name.clone())),
                )
            }
        }
    )*};
}
pub(crate) use absent_if_empty;

absent_if_empty!(Sketch);

impl<M: Metric> WireField for Counters<M> {
    fn put(&self, _: &'static Field, out: &mut EntryBuf) {
        // Most are 0: without them a record is much smaller.
        for (metric, value) in self.iter().filter(|(_, value)| *value > 0) {
            out.push_display(&metric.field().name, value);
        }
    }

    fn get(_: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let mut counters = Self::default();
        for &metric in M::ALL {
            counters[metric] = number(&metric.field().name, from)?;
        }
        Ok(counters)
    }

    fn describe(_: &'static Field, into: &mut Vec<Field>) {
        into.extend(M::ALL.iter().map(|metric| metric.field().clone()));
    }
}
