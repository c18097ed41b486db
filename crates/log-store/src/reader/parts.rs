//! The parts by which a stage is read: runs by their ids, some at a time, and what follows by time.

use records::codec::Resolution;

use super::{DROPPED, time, time_range};
use crate::census::WINDOW_ENTRIES_MAX;

/// The ids of one query: VictoriaLogs takes 16 KiB.
const IDS_MAX: usize = 300;
/// How long it takes, in seconds, until what was written can be found, unless a sender is late.
const UNSETTLED_S: u64 = 15;
/// How late a sender may be.
const LATE_S: u64 = 3_600;
/// Times of different runs that are so near, in seconds, are read together; so are the nearest if there are too many.
const GAP_S: u64 = 600;
const TIMES_MAX: usize = 32;

/// What is read together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// In LogsQL.
    pub(super) filter: String,
    /// The first second, and that behind the last, if they are known.
    pub(super) within_s: Option<(u64, u64)>,
}

/// What of a run is to be read, in seconds since 1970.
pub(super) struct UnreadRun<'a> {
    pub(super) id: &'a str,
    pub(super) from_s: u64,
    pub(super) to_s: u64,
    /// About how many.
    pub(super) records: u64,
}

impl Part {
    /// Returns what these runs lack of the records with this field.
    pub(super) fn of_runs(runs: &[UnreadRun<'_>], field: &str, further: &str) -> Self {
        let times = times(runs.iter().map(|run| (run.from_s, run.to_s)).collect());
        let within_s = times.first().zip(times.last()).map(|((from, _), (_, to))| (*from, *to));
        let times: Vec<String> = times.into_iter().map(|(from, to)| time_range(from, to)).collect();
        let filter = format!("{field}:* {} ({}){further}", ids(runs), times.join(" or "));
        Self { filter, within_s }
    }

    /// Returns what was written since runs were counted and will be, and what senders that are late will send.
    pub(super) fn following(unread: &[UnreadRun<'_>], planned_s: u64, (runs, further): (&str, &str)) -> Self {
        let since_s = planned_s.saturating_sub(UNSETTLED_S);
        let is_late = |run: &&UnreadRun<'_>| (since_s.saturating_sub(LATE_S)..since_s).contains(&run.to_s);
        let late: Vec<&UnreadRun<'_>> = unread.iter().filter(is_late).take(IDS_MAX).collect();
        let of_late = late.iter().map(|run| run.to_s).min().map_or_else(String::new, |from_s| {
            format!(" or {} _time:>={}", ids(late.iter().copied()), time(from_s))
        });
        let field = &Resolution::Interval.kind_field().name;
        let times = format!("(_time:>={}{of_late})", time(since_s));
        Self { filter: format!("({field}:*{runs} or {DROPPED}){further} {times}"), within_s: None }
    }
}

/// Returns the filter of these runs.
fn ids<'a>(runs: impl IntoIterator<Item = &'a UnreadRun<'a>>) -> String {
    let ids: Vec<&str> = runs.into_iter().map(|run| run.id).collect();
    format!("TLSDASH_RUN:in({})", ids.join(","))
}

/// Divides runs so that one query may ask for those of a group: few records, or one run.
pub(super) fn groups<'a>(runs: &'a [UnreadRun<'a>]) -> impl Iterator<Item = &'a [UnreadRun<'a>]> {
    let mut rest = runs;
    std::iter::from_fn(move || {
        let mut records = 0_u64;
        let fits = |run: &&UnreadRun<'_>| {
            records = records.saturating_add(run.records);
            records <= WINDOW_ENTRIES_MAX
        };
        let fitting = rest.iter().take(IDS_MAX).take_while(fits).count().max(1).min(rest.len());
        let (group, others) = rest.split_at(fitting);
        rest = others;
        (!group.is_empty()).then_some(group)
    })
}

/// Returns the times, in seconds, joined where they are near.
fn times(mut times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut gap_s = GAP_S;
    loop {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in &times {
            match joined.last_mut() {
                Some((_, end)) if *from <= end.saturating_add(gap_s) => *end = *to.max(end),
                _ => joined.push((*from, *to)),
            }
        }
        if joined.len() <= TIMES_MAX {
            return joined;
        }
        gap_s *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_together_as_far_as_their_records_are_few() {
        let groups_of = |counts: &[u64]| {
            let run = |records: &u64| UnreadRun { id: "x", from_s: 0, to_s: 1, records: *records };
            let runs: Vec<_> = counts.iter().map(run).collect();
            groups(&runs).map(<[_]>::len).collect::<Vec<_>>()
        };
        assert_eq!(groups_of(&[]), [0; 0]);
        assert_eq!(groups_of(&[5_999, 1, 1]), [2, 1]);
        assert_eq!(groups_of(&[1, u64::MAX, u64::MAX, 1, 0]), [1, 1, 1, 2]);
        assert_eq!(groups_of(&[0; 700]), [IDS_MAX, IDS_MAX, 100]);
    }
}
