//! The id of a row that has a name.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A named row, by a hash of its name: the same in every run and reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameId(u64);

impl NameId {
    pub(crate) fn of(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self(hasher.finish())
    }
}
