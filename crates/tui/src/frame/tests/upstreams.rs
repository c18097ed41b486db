//! Several upstreams, of which one dies and returns.

use std::time::Duration;

use insta::assert_snapshot;
use records::command::Command;
use records::histogram::Histograms;
use records::kinds::{Body, Record, UpstreamRecord, UpstreamState};
use records::metrics::{Counters, UpstreamCounter, UpstreamLatency};
use records::values::Latencies;

use crate::app::action::Effect;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, SeekTarget};
use crate::table::ListMove;

const NAMES: [&str; 3] = ["unix:/run/app-1.sock", "unix:/run/app-2.sock", "10.0.0.7:8080"];
/// The seconds in which the second upstream is down.
const DOWN: std::ops::Range<u64> = 6..12;

#[derive(Default)]
struct SyntheticUpstreams {
    second: u64,
    /// Whether the third upstream speaks TLS.
    speaks_tls: bool,
    counters: [Counters<UpstreamCounter>; 3],
    samples: [Counters<UpstreamLatency>; 3],
}

impl SyntheticUpstreams {
    /// A second of each.
    fn second(&mut self, stage: &mut TestDashboard) -> Vec<Record> {
        self.second += 1;
        let bodies: Vec<Body> = (0..3).map(|at| self.record(at)).collect();
        let of_interval = |body| {
            let mut record = stage.run.event(body);
            record.stamp.interval_us = 1_000_000;
            record
        };
        bodies.into_iter().map(of_interval).collect()
    }

    fn record(&mut self, at: usize) -> Body {
        let (counters, samples) = (&mut self.counters[at], &mut self.samples[at]);
        let is_down = at == 1 && DOWN.contains(&self.second);
        let mut interval = Histograms::default();
        if is_down {
            counters[UpstreamCounter::Refused] += 3;
        } else {
            let exchanges = 1_000 / (at as u64 + 1);
            counters[UpstreamCounter::Connections] += 20;
            counters[UpstreamCounter::Exchanges] += exchanges;
            counters[UpstreamCounter::BytesIn] += exchanges * 120;
            counters[UpstreamCounter::BytesOut] += exchanges * 8_200;
            for n in 0..exchanges {
                let us = 200 * (at as u64 + 1) + n;
                interval[UpstreamLatency::FirstByte].record(Duration::from_micros(us));
            }
            interval[UpstreamLatency::Connect].record(Duration::from_micros(80));
            if self.speaks_tls && at == 2 {
                counters[UpstreamCounter::TlsFull] += 5;
                counters[UpstreamCounter::TlsResumed] += 15;
                interval[UpstreamLatency::TlsFull].record(Duration::from_micros(1_500));
                samples[UpstreamLatency::TlsFull] += 1;
            }
            samples[UpstreamLatency::FirstByte] += exchanges;
            samples[UpstreamLatency::Connect] += 1;
        }
        counters[UpstreamCounter::Broken] += u64::from(is_down && self.second == DOWN.start);
        let since = match self.second {
            second if at != 1 || second < DOWN.start => 0,
            second if second < DOWN.end => DOWN.start,
            _ => DOWN.end,
        };
        Body::Upstream(Box::new(UpstreamRecord {
            upstream: NAMES[at].into(),
            state: if is_down { UpstreamState::Down } else { UpstreamState::Up },
            state_us: (self.second - since).max(1) * 1_000_000,
            reason: if is_down { "Connection refused (os error 111)".into() } else { String::new() },
            open: if is_down { 0 } else { 12 },
            counters: *counters,
            latencies: Latencies::new(&interval, samples),
            ..UpstreamRecord::default()
        }))
    }
}

/// A run of so many seconds.
pub(crate) fn seen(seconds: u64) -> TestDashboard {
    seen_of(seconds, SyntheticUpstreams::default())
}

fn seen_of(seconds: u64, mut upstreams: SyntheticUpstreams) -> TestDashboard {
    let mut stage = TestDashboard::live(options(), 1);
    for _ in 0..seconds {
        let records = upstreams.second(&mut stage);
        stage.read(records);
        stage.pass(1);
    }
    stage
}

#[test]
fn upstreams_have_a_line_each_above_the_clients() {
    let mut stage = seen(10);
    assert_snapshot!("upstreams_160x48", stage.screen(160, 48));
    assert_snapshot!("upstreams_80x24", stage.screen(80, 24));
    stage.press('9');
    stage.screen(80, 24);
    assert_snapshot!("only_upstreams_80x24", stage.screen(80, 24));
}

#[test]
fn handshakes_with_upstreams_have_columns_where_one_speaks_tls() {
    let mut stage = seen_of(10, SyntheticUpstreams { speaks_tls: true, ..SyntheticUpstreams::default() });
    stage.press('9');
    stage.screen(160, 48);
    let screen = stage.screen(160, 48);
    let row = |name: &str| screen.lines().find(|line| line.contains(name)).expect(&screen).to_owned();
    assert!(row("exch/s p50").contains("resumed tls p99"), "{screen}");
    assert!(row(NAMES[2]).contains("75.0%"), "{screen}");
    assert!(!seen(10).screen(160, 48).contains("tls p99"));
}

#[test]
fn a_key_drains_the_selected_upstream_and_returns_it() {
    let mut stage = seen(8);
    stage.screen(160, 48);
    assert_eq!(stage.press('D').len(), 1, "nothing is sent");
    assert!(stage.screen(160, 48).contains("no upstream is selected: focus their pane"));
    stage.press('9');
    stage.screen(160, 48);
    stage.want(Intent::Scroll(ListMove::First));
    let sent = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send(command) => Some(command),
            _ => None,
        })
    };
    let upstream = |drained| Some(Command::Upstream { name: NAMES[2].to_owned(), drained });
    assert_eq!(sent(stage.press('D')), upstream(true), "the first in the order of names");
    let record = UpstreamRecord {
        upstream: NAMES[2].into(),
        state: UpstreamState::Drained,
        ..UpstreamRecord::default()
    };
    let mut drained = stage.run.event(Body::Upstream(Box::new(record)));
    drained.stamp.interval_us = 1_000_000;
    stage.read(vec![drained]);
    stage.pass(1);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("drained"), "{screen}");
    // Also while an earlier moment is shown.
    stage.want(Intent::Freeze);
    stage.want(Intent::Seek(SeekTarget::PreviousInterval));
    assert_eq!(sent(stage.press('D')), upstream(false));
}

#[test]
fn an_upstream_that_is_back_is_down_at_the_moment_when_it_was() {
    let mut stage = seen(16);
    stage.press('9');
    stage.screen(160, 48);
    let line = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        screen.lines().find(|line| line.contains(NAMES[1])).unwrap().to_owned()
    };
    assert!(line(&mut stage).contains(" up "), "{}", line(&mut stage));
    stage.want(Intent::Freeze);
    let went_down = |stage: &mut TestDashboard| line(stage).contains(" down ");
    for _ in 0..12 {
        stage.want(Intent::Seek(SeekTarget::PreviousInterval));
        if went_down(&mut stage) {
            break;
        }
    }
    let line = line(&mut stage);
    assert!(line.contains(" down ") && line.contains("refused"), "{line}");
}
