//! Where a key applies.

/// The screen or mode in which a key applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyContext {
    Anywhere,
    Panes,
    /// On the panes while a run is played; a key that also means something else there means this.
    Replay,
    Tuning,
    Experiments,
    Runs,
    /// On a list of columns or panes.
    Choice,
}

impl KeyContext {
    /// True if a key of this context means something where the other is.
    pub(super) fn reaches(self, here: Self) -> bool {
        self == Self::Anywhere || self == here || (self, here) == (Self::Panes, Self::Replay)
    }

    /// True if a key cannot have a meaning in both.
    pub(super) fn clashes(self, other: Self) -> bool {
        self == other || self == Self::Anywhere || other == Self::Anywhere
    }
}
