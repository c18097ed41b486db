//! What has been read, by second, and what a count of the store shows to be unread.

use std::collections::BTreeMap;

pub(crate) const HOUR: u64 = 3600;
/// The seconds whose counts are kept; of earlier ones only the sum of each hour is.
const SECONDS_MAX: usize = 100_000;
/// The entries that one query asks for; a single second may have more.
const WINDOW_ENTRIES_MAX: u64 = 4_000;

/// Entries by the second or hour in which they were written.
pub(crate) type Counts = BTreeMap<u64, u64>;

/// Seconds to be read with one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first second, and that behind the last.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The entries that were counted there.
    pub(crate) entries: u64,
}

/// The entries that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadCounts {
    seconds: Counts,
    /// Of seconds that are no longer kept.
    hours: Counts,
}

impl ReadCounts {
    /// Remembers what was read of a window: these seconds, and no entry in others.
    pub(crate) fn insert(&mut self, read: Counts) {
        self.seconds.extend(read);
        while self.seconds.len() > SECONDS_MAX
            && let Some((second, count)) = self.seconds.pop_first()
        {
            *self.hours.entry(second - second % HOUR).or_default() += count;
        }
    }

    /// Whether more of an hour was counted than was read.
    pub(crate) fn lacks_hour(&self, hour: u64, counted: u64) -> bool {
        let kept: u64 = self.seconds.range(hour..hour + HOUR).map(|(_, count)| count).sum();
        counted > kept + self.hours.get(&hour).unwrap_or(&0)
    }

    /// Whether more of a second was counted than was read. Fewer are no reason to read it again: a store forgets.
    pub(crate) fn lacks_second(&self, second: u64, counted: u64) -> bool {
        counted > *self.seconds.get(&second).unwrap_or(&0)
    }

    /// Forgets the sum of an hour, which is then read again as a whole.
    pub(crate) fn forget_hour(&mut self, hour: u64) {
        self.hours.remove(&hour);
    }

    pub(crate) fn newest(&self) -> Option<u64> {
        self.seconds.last_key_value().map(|(second, _)| *second)
    }
}

/// Groups the wanted of the counted seconds. No window spans another one that has entries.
pub(crate) fn windows(counted: &Counts, is_wanted: impl Fn(u64, u64) -> bool) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut is_open = false;
    for (&second, &count) in counted {
        let wanted = is_wanted(second, count);
        match windows.last_mut().filter(|last| is_open && last.entries + count <= WINDOW_ENTRIES_MAX) {
            Some(last) if wanted => {
                last.to = second + 1;
                last.entries += count;
            }
            _ if wanted => windows.push(Window { from: second, to: second + 1, entries: count }),
            _ => {}
        }
        is_open = wanted;
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_bounded_and_leave_out_what_is_not_wanted() {
        let counted = Counts::from([(1, 3_000), (2, 1_000), (3, 1), (5, 9_000), (8, 7), (9, 2), (10, 3)]);
        let found = windows(&counted, |second, _| second != 9);
        let window = |from, to, entries| Window { from, to, entries };
        let expected =
            [window(1, 3, 4_000), window(3, 4, 1), window(5, 6, 9_000), window(8, 9, 7), window(10, 11, 3)];
        assert_eq!(found, expected);
    }

    #[test]
    fn old_hours_are_known_by_their_sums() {
        let mut read = ReadCounts::default();
        let seconds = SECONDS_MAX as u64 + 2 * HOUR;
        read.insert((0..seconds).map(|second| (second, 2)).collect());
        assert_eq!(read.seconds.len(), SECONDS_MAX);
        assert!(!read.lacks_hour(0, 2 * HOUR) && read.lacks_hour(0, 2 * HOUR + 1));
        assert!(read.lacks_second(5, 1), "its count is no longer kept");
        assert!(!read.lacks_second(seconds - 1, 1) && read.lacks_second(seconds - 1, 3));
        read.forget_hour(0);
        assert!(read.lacks_hour(0, 1));
        assert_eq!(read.newest(), Some(seconds - 1));
    }
}
