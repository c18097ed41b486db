//! Counts responses by their exact status, of HTTP or of gRPC.

use crate::wire::absent_if_empty;
use std::fmt;
use std::str::FromStr;

use crate::text::ParseIdError;

/// The most statuses that are counted separately; further ones are summed.
pub(crate) const STATUSES_MAX: usize = 64;
/// The names of gRPC's statuses, by their number.
const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// The key for all further statuses.
const OTHER: &str = "other";

/// Responses by exact status, in ascending order, at most 64 statuses; responses of further ones are summed.
///
/// As text, `status:count` separated by blanks: `200:11800 404:80 other:3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    counts: Vec<(u16, u64)>,
    other: u64,
}

impl StatusCounts {
    pub fn count(&mut self, status: u16, n: u64) {
        let sum = match self.counts.binary_search_by_key(&status, |&(known, _)| known) {
            Ok(at) => &mut self.counts[at].1,
            Err(_) if self.counts.len() == STATUSES_MAX => &mut self.other,
            Err(at) => {
                self.counts.insert(at, (status, 0));
                &mut self.counts[at].1
            }
        };
        *sum = sum.saturating_add(n);
    }

    pub fn add(&mut self, more: &Self) {
        more.counts.iter().for_each(|&(status, n)| self.count(status, n));
        self.other = self.other.saturating_add(more.other);
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |&(status, n): &(u16, u64)| (status, n.saturating_sub(earlier.of(status)));
        let counts = self.counts.iter().map(since).filter(|(_, n)| *n > 0).collect();
        Self { counts, other: self.other.saturating_sub(earlier.other) }
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.other = 0;
    }

    /// Each status with its responses, in ascending order; without those of further statuses.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.counts.iter().copied()
    }

    /// Responses of a status.
    pub fn of(&self, status: u16) -> u64 {
        self.counts.binary_search_by_key(&status, |&(known, _)| known).map_or(0, |at| self.counts[at].1)
    }

    /// Responses of statuses that found no room.
    pub fn other(&self) -> u64 {
        self.other
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.other == 0
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<(u16, u64)>()
    }
}

/// The name of a status of gRPC, or its number if it has none.
pub fn grpc_status_name(status: u16) -> String {
    GRPC_STATUSES.get(usize::from(status)).map_or_else(|| status.to_string(), |name| (*name).to_owned())
}

impl fmt::Display for StatusCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        for (status, n) in self.iter() {
            write!(f, "{blank}{status}:{n}")?;
            blank = " ";
        }
        if self.other > 0 {
            write!(f, "{blank}{OTHER}:{}", self.other)?;
        }
        Ok(())
    }
}

impl FromStr for StatusCounts {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let mut counts = Self::default();
        for part in text.split_ascii_whitespace() {
            let (status, n) = part.split_once(':').ok_or(ParseIdError)?;
            let n: u64 = n.parse().map_err(|_| ParseIdError)?;
            match status {
                OTHER => counts.other = counts.other.saturating_add(n),
                status => counts.count(status.parse().map_err(|_| ParseIdError)?, n),
            }
        }
        Ok(counts)
    }
}

absent_if_empty!(StatusCounts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_one_by_one_and_those_beyond_the_bound_summed() {
        let mut counts = StatusCounts::default();
        for status in (0..100).rev() {
            counts.count(200 + status, 2);
        }
        assert_eq!((counts.iter().count(), counts.other()), (STATUSES_MAX, 72));
        assert_eq!(counts.iter().map(|(_, n)| n).sum::<u64>() + counts.other(), 200);
        assert_eq!(counts.to_string().parse(), Ok(counts.clone()));
        let mut later = counts.clone();
        later.count(299, 5);
        assert_eq!(later.since(&counts).to_string(), "299:5");
    }

    #[test]
    fn text_that_counts_nothing_is_refused() {
        for text in ["200", "200:", "x:1", "200:-1", "70000:1", "200:1,404:2"] {
            assert_eq!(text.parse::<StatusCounts>(), Err(ParseIdError), "{text}");
        }
        assert!("".parse::<StatusCounts>().unwrap().is_empty());
    }
}
