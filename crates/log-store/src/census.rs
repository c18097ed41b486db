//! What has been read, by second, and what a count of the store shows to be unread.

use std::collections::BTreeMap;

pub(crate) const HOUR: u64 = 3600;
/// The seconds whose counts are kept; an earlier hour that grows is read again as a whole.
const SECONDS_MAX: usize = 100_000;
/// The entries that one query asks for; a single second may have more.
pub(crate) const WINDOW_ENTRIES_MAX: u64 = 6_000;

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
    /// The last census of each hour.
    hours: Counts,
}

impl ReadCounts {
    /// Remembers what was read of a window: these seconds, and no entry in others. `future` is the first second that no good
    /// clock has reached.
    pub(crate) fn insert(&mut self, read: Counts, future: u64) {
        self.seconds.extend(read);
        while self.seconds.len() > SECONDS_MAX {
            // A clock that is far ahead must not drive out the present.
            let is_future = self.seconds.last_key_value().is_some_and(|(second, _)| *second > future);
            if is_future {
                self.seconds.pop_last()
            } else {
                self.seconds.pop_first()
            };
        }
    }

    /// Whether the seconds of an hour are to be counted: it has changed since the last census. An hour that is no longer
    /// kept by seconds is read again only if it has grown.
    pub(crate) fn has_changed(&mut self, hour: u64, counted: u64) -> bool {
        let is_kept = self.seconds.first_key_value().is_some_and(|(second, _)| *second <= hour);
        match self.hours.insert(hour, counted) {
            Some(before) => before < counted || (before != counted && is_kept),
            None => true,
        }
    }

    /// Forgets the census of the hours of a range, of which not all was read.
    pub(crate) fn forget_census(&mut self, from: u64, to: u64) {
        self.hours.retain(|hour, _| hour + HOUR <= from || *hour >= to);
    }

    /// Takes over that a store has forgotten entries of these seconds, so that later ones are found.
    pub(crate) fn lower(&mut self, from: u64, to: u64, counted: &Counts) {
        for (second, read) in self.seconds.range_mut(from..to) {
            *read = (*read).min(*counted.get(second).unwrap_or(&0));
        }
    }

    /// Whether more of a second was counted than was read.
    pub(crate) fn lacks_second(&self, second: u64, counted: u64) -> bool {
        counted > *self.seconds.get(&second).unwrap_or(&0)
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
        let counted = Counts::from([(1, 5_000), (2, 1_000), (3, 1), (5, 9_000), (8, 7), (9, 2), (10, 3)]);
        let found = windows(&counted, |second, _| second != 9);
        let window = |from, to, entries| Window { from, to, entries };
        let expected =
            [window(1, 3, 6_000), window(3, 4, 1), window(5, 6, 9_000), window(8, 9, 7), window(10, 11, 3)];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_hour_that_changes_is_counted_again_and_one_that_is_not_kept_if_it_grows() {
        let mut read = ReadCounts::default();
        let seconds = SECONDS_MAX as u64 + 2 * HOUR;
        read.insert((0..seconds).map(|second| (second, 2)).collect(), u64::MAX);
        assert_eq!((read.seconds.len(), read.newest()), (SECONDS_MAX, Some(seconds - 1)));
        let newest = seconds - seconds % HOUR;
        for hour in [0, newest] {
            assert!(read.has_changed(hour, 7_200) && !read.has_changed(hour, 7_200));
            assert!(read.has_changed(hour, 7_201));
        }
        assert!(!read.has_changed(0, 7_000) && read.has_changed(newest, 7_000));
        read.forget_census(newest + 5, newest + 6);
        assert!(read.has_changed(newest, 7_000) && !read.has_changed(0, 7_000));
        assert!(!read.lacks_second(seconds - 1, 2));
        read.lower(seconds - 1, seconds, &Counts::from([(seconds - 1, 1)]));
        assert!(read.lacks_second(seconds - 1, 2) && !read.lacks_second(seconds - 1, 1));
        read.insert((0..SECONDS_MAX as u64).map(|second| (2 * seconds + second, 1)).collect(), seconds);
        assert_eq!((read.seconds.len(), read.newest()), (SECONDS_MAX, Some(seconds - 1)));
    }
}
