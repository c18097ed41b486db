//! Running a load, and looking at what it counted.

mod server;

use std::time::{Duration, Instant};

use loadgen::{Load, LoadConfig, Plan, Target, Trust};
use records::delta::LoadDelta;
use records::metrics::{Counters, LoadCounter};

pub(crate) use records::values::TlsVersion;
pub(crate) use server::{ScriptedRequest, ServerAction, TestServer};

/// Longer than any load here takes.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A plan of HTTP/2.
pub(crate) fn http2_plan(streams: u32, text: &str) -> Plan {
    plan(&format!("{text},http2=on,streams={streams}"))
}

pub(crate) fn plan(text: &str) -> Plan {
    text.parse().unwrap()
}

/// A load on a server, at its path `/`.
pub(crate) fn config(server: &TestServer, plan_text: &str) -> LoadConfig {
    let target: Target = server.url("/").parse().unwrap();
    let trust = server.certificate().map_or(Trust::Roots, Trust::Certificate);
    LoadConfig::new(target, plan(plan_text), trust)
}

/// Runs a load to its end and gives everything it counted.
pub(crate) fn run(config: LoadConfig) -> (LoadDelta, Load) {
    let mut load = Load::start(config).unwrap();
    let all = finish(&mut load);
    (all, load)
}

/// Collects until the load has ended.
pub(crate) fn finish(load: &mut Load) -> LoadDelta {
    let mut all = LoadDelta::default();
    collect_until(load, &mut all, |_, ended| ended);
    assert_adds_up(&all.counters);
    all
}

/// Collects again and again until `enough` of the counts and of whether the load has ended.
pub(crate) fn collect_until(
    load: &mut Load,
    all: &mut LoadDelta,
    enough: impl Fn(&Counters<LoadCounter>, bool) -> bool,
) {
    let deadline = Instant::now() + LONG;
    loop {
        let ended = load.is_finished();
        load.collect(all, Duration::from_millis(20));
        if enough(&all.counters, ended) {
            return;
        }
        assert!(Instant::now() < deadline, "not reached in time: {:?}", all.counters);
    }
}

/// What holds for every load that has ended.
pub(crate) fn assert_adds_up(counts: &Counters<LoadCounter>) {
    use LoadCounter as C;
    let ends = [C::Ok, C::Failed, C::NeverSent, C::Unfinished, C::Warmup];
    assert_eq!(counts[C::Scheduled], counts.sum(&ends), "{counts:?}");
    assert!(counts[C::Throttled] <= counts[C::NeverSent], "{counts:?}");
    let classes = [
        C::FailedConnect,
        C::FailedTls,
        C::FailedTimeout,
        C::FailedReset,
        C::FailedShort,
        C::FailedBody,
        C::FailedProtocol,
        C::FailedStatus,
    ];
    assert_eq!(counts[C::Failed], counts.sum(&classes), "{counts:?}");
    assert_eq!(counts[C::Opened], counts[C::Closed], "{counts:?}");
    assert!(counts[C::ResumptionsOffered] <= counts[C::ResumptionsWanted], "{counts:?}");
}

/// Waits for something that another thread brings about.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
