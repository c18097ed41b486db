//! Values that are encoded as one word.

use std::fmt::Display;
use std::str::FromStr;

/// The text is not the id that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id")]
pub struct ParseIdError;

/// A value that a field carries as one word, which every record of its kind has.
pub(crate) trait Keyword: Display + FromStr {}

/// Declares an enum that is encoded as one of its keywords.
macro_rules! keyword_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl $crate::text::keywords::Keyword for $name {}

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::ParseIdError;

            fn from_str(text: &str) -> Result<Self, $crate::text::ParseIdError> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err($crate::text::ParseIdError),
                }
            }
        }
    };
}
pub(crate) use keyword_enum;
