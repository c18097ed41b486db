//! The parts by which a stage is read: runs by their ids, some at a time, and what follows by time.

use records::codec::Resolution;
use records::rollups::{NO_END, RunCount, RunProgress, Stage, UnreadRun};

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

/// Returns the parts by which is read what runs have at this resolution and former stages have not; `runs` and `further`
/// are what their ids and all entries must pass. The last one finds what follows, too, if the stage has no end. Runs were
/// counted at the second `planned_s`.
///
/// Runs are asked for by their ids, some at a time: a store keeps the entries of a host together, and would unpack those
/// of all hosts again for each piece of time.
pub(super) fn parts(
    progress: &RunProgress,
    (counted, planned_s): (&[RunCount], u64),
    stage: Stage,
    (runs, further): (&str, &str),
) -> Vec<Part> {
    let field = &stage.resolution.kind_field().name;
    let unread = progress.unread(counted, stage);
    let groups = groups(&unread).map(|runs| Part::of_runs(runs, field, further));
    if stage.resolution != Resolution::Interval {
        return groups.collect();
    }
    let end = format!(" _time:<{}", time(stage.until_s));
    let end = if stage.until_s == NO_END { "" } else { &end };
    let dropped = Part { filter: format!("{DROPPED}{further}{end}"), within_s: None };
    let following = (stage.until_s == NO_END).then(|| Part::following(&unread, planned_s, (runs, further)));
    [dropped].into_iter().chain(groups).chain(following).collect()
}

impl Part {
    /// Returns what these runs lack of the records with this field.
    fn of_runs(runs: &[UnreadRun<'_>], field: &str, further: &str) -> Self {
        let times = times(runs.iter().map(|run| (run.from_s, run.to_s)).collect());
        let within_s = times.first().zip(times.last()).map(|((from, _), (_, to))| (*from, *to));
        let times: Vec<String> = times.into_iter().map(|(from, to)| time_range(from, to)).collect();
        let filter = format!("{field}:* {} ({}){further}", ids(runs), times.join(" or "));
        Self { filter, within_s }
    }

    /// Returns what was written since runs were counted and will be, and what senders that are late will send.
    fn following(unread: &[UnreadRun<'_>], planned_s: u64, (runs, further): (&str, &str)) -> Self {
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
fn groups<'a>(runs: &'a [UnreadRun<'a>]) -> impl Iterator<Item = &'a [UnreadRun<'a>]> {
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
    use journal::Entry;

    use super::*;

    const RUN: [&str; 4] = [
        "00000000000000000000000000000001",
        "00000000000000000000000000000002",
        "00000000000000000000000000000003",
        "00000000000000000000000000000004",
    ];

    fn rollup(run: &str, kind: &str, second: u64, [after, through, batch]: [u64; 3]) -> Entry {
        let numbers = [after, through, batch].map(|number| number.to_string());
        let fields = [("TLSDASH_RUN", run), ("TLSDASH_SEQ", "1"), (kind, "x")];
        let stands_for =
            ["TLSDASH_AFTER", "TLSDASH_THROUGH", "TLSDASH_BATCH"].into_iter().zip(numbers.iter());
        let stands_for = stands_for.map(|(name, number)| (name, number.as_str()));
        Entry::from_fields((1_000_000 + second) * 1_000_000, fields.into_iter().chain(stands_for))
    }

    #[test]
    fn runs_are_found_by_their_ids_and_what_follows_by_time() {
        let count = |run: &str, to_s: u64, minutes| RunCount {
            run: run.to_owned(),
            from_us: 1_000_000_000_000,
            to_us: (1_000_000 + to_s) * 1_000_000,
            first: 1,
            last: if run == RUN[2] { 9 } else { 100 },
            intervals: 9,
            minutes,
            hours: 1,
        };
        // One goes on, one was killed hours ago, one has ended in order, and one has no roll-ups and a sender that is late.
        let counted = [
            count(RUN[0], 20_000, 9),
            count(RUN[1], 7_000, 9),
            count(RUN[2], 3_000, 9),
            RunCount { hours: 0, ..count(RUN[3], 19_700, 0) },
        ];
        let stage = |resolution, until_s| Stage { resolution, until_s };
        let mut progress = RunProgress::new(&counted, 1_020_010_000_000);
        let found = |progress: &RunProgress, stage| {
            let parts = parts(progress, (&counted, 1_020_010), stage, ("", ""));
            parts.into_iter().map(|part| (part.filter, part.within_s)).collect::<Vec<_>>()
        };
        progress.next_stage(Resolution::Hour);
        let hours = found(&progress, stage(Resolution::Hour, 2_000_000));
        let all = format!(
            "TLSDASH_HOUR:* TLSDASH_RUN:in({},{},{}) (_time:[1970-01-12T13:46:40Z,1970-01-12T19:20:01Z))",
            RUN[0], RUN[1], RUN[2]
        );
        assert_eq!(hours, [(all, Some((1_000_000, 1_020_001)))]);
        for (run, second) in [(RUN[0], 18_000), (RUN[1], 3_600), (RUN[2], 3_000)] {
            let rollup = rollup(run, "TLSDASH_HOUR", second, [0, 9, 1]);
            progress.pass(&rollup, &mut |_| {});
        }
        progress.next_stage(Resolution::Minute);
        let minutes = found(&progress, stage(Resolution::Minute, 2_000_000));
        let of_both = format!(
            "TLSDASH_MINUTE:* TLSDASH_RUN:in({},{}) (_time:[1970-01-12T14:44:40Z,1970-01-12T15:43:21Z) or \
             _time:[1970-01-12T18:44:40Z,1970-01-12T19:20:01Z))",
            RUN[1], RUN[0]
        );
        assert_eq!(minutes, [(of_both, Some((1_003_480, 1_020_001)))]);
        for (run, second) in [(RUN[0], 19_980), (RUN[1], 6_960)] {
            let rollup = rollup(run, "TLSDASH_MINUTE", second, [9, 10, 1]);
            progress.pass(&rollup, &mut |_| {});
        }
        progress.next_stage(Resolution::Interval);
        let intervals = found(&progress, stage(Resolution::Interval, NO_END));
        let of_all = format!(
            "TLSDASH_KIND:* TLSDASH_RUN:in({},{},{}) (_time:[1970-01-12T13:46:40Z,1970-01-12T19:20:01Z))",
            RUN[3], RUN[1], RUN[0]
        );
        let following = format!(
            "(TLSDASH_KIND:* or {DROPPED}) (_time:>=1970-01-12T19:19:55Z or TLSDASH_RUN:in({}) \
             _time:>=1970-01-12T19:15:01Z)",
            RUN[3]
        );
        let filters: Vec<&str> = intervals.iter().map(|(filter, _)| &**filter).collect();
        assert_eq!(filters, [DROPPED, &of_all, &following]);
        let last = stage(Resolution::Interval, NO_END);
        let mut parts = parts(&progress, (&counted[..3], 1_020_010), last, (" runs", " more"));
        let following = format!("(TLSDASH_KIND:* runs or {DROPPED}) more (_time:>=1970-01-12T19:19:55Z)");
        assert_eq!(parts.pop().unwrap().filter, following);
    }

    #[test]
    fn runs_are_read_together_as_far_as_their_records_are_few() {
        let groups_of = |counts: &[u64]| {
            let run =
                |records: &u64| UnreadRun { id: "x", from_s: 0, to_s: 1, records: *records, through: 0 };
            let runs: Vec<_> = counts.iter().map(run).collect();
            groups(&runs).map(<[_]>::len).collect::<Vec<_>>()
        };
        assert_eq!(groups_of(&[]), [0; 0]);
        assert_eq!(groups_of(&[5_999, 1, 1]), [2, 1]);
        assert_eq!(groups_of(&[1, u64::MAX, u64::MAX, 1, 0]), [1, 1, 1, 2]);
        assert_eq!(groups_of(&[0; 700]), [IDS_MAX, IDS_MAX, 100]);
    }
}
