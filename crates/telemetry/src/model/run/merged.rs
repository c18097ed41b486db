//! The runs that are merged into one, on a common clock.

use super::Run;
use crate::record::Stamp;

/// One of several runs that are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// What it is called, such as its host.
    pub(super) name: &'a str,
    pub(super) run: &'a Run,
    /// Microseconds that make `CLOCK_REALTIME` of its monotonic clock, by its last record.
    pub(super) shift_us: i64,
}

impl<'a> Member<'a> {
    pub(super) fn new((name, run): (&'a str, &'a Run)) -> Self {
        Self { name, run, shift_us: run.last_realtime_us() as i64 - run.last_us() as i64 }
    }

    /// A moment of its clock on the common one.
    pub(super) fn shifted_us(&self, us: u64) -> u64 {
        us.saturating_add_signed(self.shift_us)
    }

    /// A stamp of its clock on the common one.
    pub(super) fn shifted(&self, stamp: Stamp) -> Stamp {
        Stamp { mono_us: self.shifted_us(stamp.mono_us), ..stamp }
    }
}

/// What all have in common, or what each has, once.
pub(super) fn joined(members: &[Member<'_>], of: impl Fn(&Run) -> String) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in members.iter().map(|member| of(member.run)) {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}
