use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::figures::{AlertFigure as _, FigureSide};
use crate::testing::finished;
use records::delta::{FinishedRequest, HttpDelta, LoadDelta, LoadState, ProxyDelta};
use records::kinds::{AlertState, HostRecord};
use records::metrics::{
    CpuGroup, KnownValue, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency, TimeResolution, TlsCounter,
    TlsLatency,
};
use records::values::LoadEvent;

fn alert(text: &str) -> Alert {
    text.parse().unwrap()
}

fn refusal(text: &str) -> String {
    text.parse::<Alert>().unwrap_err().to_string()
}

#[test]
fn an_alert_has_a_condition_a_time_and_a_window_in_any_order() {
    let seconds = |alert: &Alert| (alert.hold().as_secs(), alert.window().as_secs());
    assert_eq!(seconds(&alert("response.p99 > 5ms")), (0, 10));
    assert_eq!(seconds(&alert("response.p99>5ms for 30s")), (30, 10));
    assert_eq!(seconds(&alert("failed.ratio >= 1% over 1m for 2m 30s")), (150, 60));
    assert_eq!(seconds(&alert(" send lag.p99 > 1 ms  over 1h for 0s ")), (0, 3_600));
    assert_eq!(alert(" errors > 0 for 5s ").to_string(), "errors > 0 for 5s");
}

#[test]
fn a_text_that_is_no_alert_is_refused_with_the_place() {
    for (text, expected) in [
        (
            "response.p99 5ms for 30s",
            "expected <, <=, >, >=, == or != at character 14, as in 'response.p99 > 5ms for 30s'",
        ),
        ("response.p99  for 30s", "!= at character 13, as"),
        ("", "expected <, <=, >, >=, == or != at character 1, as"),
        ("respose.p99 > 5ms", "there is no figure respose.p99; did you mean response.p99?"),
        (
            "response.p99 > soon",
            "expected a number, or a value such as 5ms, 90%, 100/s or 1MB, at character 16",
        ),
        ("errors >=", "at character 10"),
        ("response.p99 > 5", "response.p99 is a time; write 'response.p99 > 5ms'"),
        ("response.p99 > 5ms for", "expected a time up to 24h such as 30s after 'for' at character 20"),
        ("response.p99 > 5ms for over 10s", "after 'for' at character 20"),
        ("response.p99 > 5ms for soon", "after 'for' at character 20"),
        (
            "response.p99 > 5ms over 2h",
            "expected a time from 100ms to 1h such as 10s after 'over' at character 20",
        ),
        ("response.p99 > 5ms over 0s", "after 'over' at character 20"),
        ("response.p99 > 5ms for 1s for 2s", "a second 'for' at character 27"),
        ("duration > 5m", "duration is a figure of a whole run and has no value over a window"),
        ("lost > 0", "lost is a figure of a whole run"),
    ] {
        let error = refusal(text);
        assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
    }
    assert!(refusal(&format!("errors > {}", "1".repeat(300))).contains("at most 200"));
}

proptest! {
    #[test]
    fn parsed_alerts_read_back_and_errors_take_one_line(
        text in "(response.p99|errors|bytes.rate|x)? ?[<>=!]{0,2} ?[0-9.]{0,4}(ms|%|MB/s|/s)?( (for|over) ?[0-9]{0,3}(s|m)?){0,3}|\\PC{0,60}"
    ) {
        match text.parse::<Alert>() {
            Ok(alert) => prop_assert_eq!(alert.to_string().parse::<Alert>(), Ok(alert)),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

const ALL: [FigureSide; 6] = [
    FigureSide::Run,
    FigureSide::Process,
    FigureSide::Observed,
    FigureSide::Proxy,
    FigureSide::Http,
    FigureSide::Load,
];

fn all() -> FigureSubjects {
    FigureSubjects::new(ALL.to_vec(), &["/api".to_owned(), "/=/ for".to_owned()], &["unix:/a".to_owned()])
}

/// A run that is simulated second by second.
struct AlertSimulation {
    alerts: Alerts,
    now_us: u64,
    load: LoadState,
    host: HostRecord,
}

/// One second: how many exchanges and answers, and how long each took.
#[derive(Clone, Copy)]
struct SimulatedSecond {
    exchanges: u64,
    latency_us: u64,
    is_whole: bool,
}

impl AlertSimulation {
    fn new(texts: &[&str]) -> Self {
        let alerts: Vec<Alert> = texts.iter().map(|text| alert(text)).collect();
        let alerts = Alerts::new(&alerts, 0, all()).unwrap();
        let load = LoadState { running: true, rate: 100.0, threads: 1, ..LoadState::default() };
        let mut simulation = Self { alerts, now_us: 5_000_000, load, host: HostRecord::default() };
        // The interval that the run begins in.
        simulation.second(SimulatedSecond { exchanges: 0, latency_us: 1, is_whole: true });
        simulation
    }

    fn second(&mut self, second: SimulatedSecond) -> Vec<AlertUpdate> {
        let SimulatedSecond { exchanges, latency_us, is_whole } = second;
        let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
        proxy.counters[ProxyCounter::Exchanges] = exchanges;
        proxy.counters[ProxyCounter::BytesOut] = exchanges * 1_000;
        proxy.counters[ProxyCounter::Accepted] = 2;
        proxy.tls.counters[TlsCounter::FullExpired] = exchanges;
        proxy.tls.counters[TlsCounter::FullNoTicket] = exchanges * 3;
        proxy.counters[ProxyCounter::Closed] = 1;
        let mut http = HttpDelta::default();
        let upstream_time = Some(Duration::from_micros(latency_us));
        let request = FinishedRequest { route: Some(1), status: Some(503), upstream_time, ..finished() };
        (0..exchanges).for_each(|_| http.finish(&request));
        http.gauges.requests = 1;
        proxy.http = Some(Box::new(http));
        load.counters[LoadCounter::Ok] = exchanges;
        load.counters[LoadCounter::Scheduled] = exchanges;
        for _ in 0..exchanges {
            proxy.latencies[ProxyLatency::Exchange].record(Duration::from_micros(latency_us));
            proxy.tls.latencies[TlsLatency::WorkerFull].record(Duration::from_micros(latency_us));
            load.latencies[LoadLatency::Response].record(Duration::from_micros(latency_us));
            load.events.count(LoadEvent::Status(503), String::new);
        }
        self.load.due_us += 1_000_000;
        self.load.measured_us += 1_000_000;
        self.host.cpu[CpuGroup::Proxy] += 250_000;
        self.now_us += 1_000_000;
        self.alerts.observe(&AlertInterval {
            end_us: self.now_us,
            is_whole,
            proxy: Some(&proxy),
            load: Some((&load, self.load)),
            host: &self.host,
        })
    }

    /// So many seconds with the given latency, 200 exchanges each; the transitions with their second, from 1.
    fn run(&mut self, seconds: usize, latency_us: u64) -> Vec<(usize, AlertRecord)> {
        let second = SimulatedSecond { exchanges: 200, latency_us, is_whole: true };
        (1..=seconds)
            .flat_map(|at| records(self.second(second)).into_iter().map(move |record| (at, record)))
            .collect()
    }
}

fn records(news: Vec<AlertUpdate>) -> Vec<AlertRecord> {
    let record = |news| match news {
        AlertUpdate::Transition(record) => Some(record),
        AlertUpdate::Notice(_) => None,
    };
    news.into_iter().filter_map(record).collect()
}

#[test]
fn reasons_and_waits_of_handshakes_have_values_over_a_window() {
    for (text, value) in [
        ("handshakes.full.expired > 1 over 2s", 400.0),
        ("handshakes.full.expired.ratio > 1% over 2s", 0.25),
        ("wait_worker_full.p50 > 1ms over 2s", 7_000.0),
    ] {
        let [(_, fired)] = &AlertSimulation::new(&[text]).run(5, 7_000)[..] else { panic!("{text}") };
        assert!((fired.value - value).abs() <= value / 100.0, "{text}: {fired:?}");
    }
}

#[test]
fn an_alert_fires_after_its_time_and_resolves_at_once() {
    let mut run = AlertSimulation::new(&["exchange.p50 > 5ms for 3s over 2s"]);
    assert_eq!(run.run(10, 1_000), []);
    let [(at, fired)] = &run.run(10, 7_000)[..] else { panic!("not once") };
    // The median is above the limit from the first second on that fills half of the window.
    assert!((4..=5).contains(at), "{at}");
    assert_eq!((fired.state, fired.number, fired.firing_us), (AlertState::Fired, 1, 0));
    assert!((fired.value - 7_000.0).abs() < 10.0 && (fired.limit - 5_000.0).abs() < 1e-6, "{fired:?}");
    assert_eq!(
        fired.sentence.0,
        "alert: exchange.p50 is 7 ms > 5 ms for 3 s (over 2 s)"
            .replace("7 ms", &fired.unit().show(fired.value))
    );
    assert_eq!(run.run(5, 9_000), []);
    let [(at, resolved)] = &run.run(10, 1_000)[..] else { panic!("not once") };
    assert!(*at <= 2, "{at}");
    assert_eq!(resolved.state, AlertState::Resolved);
    assert!(resolved.worst > 8_900.0 && resolved.firing_us >= 10_000_000, "{resolved:?}");
    assert!(
        resolved.sentence.0.starts_with("alert resolved: exchange.p50 is 1 ms; worst 9"),
        "{}",
        resolved.sentence.0
    );
}

#[test]
fn a_condition_that_does_not_hold_for_long_enough_does_not_fire() {
    let mut run = AlertSimulation::new(&["exchange.p50 > 5ms for 5s over 1s"]);
    for _ in 0..5 {
        assert_eq!(run.run(4, 7_000), []);
        assert_eq!(run.run(2, 1_000), []);
    }
    assert_eq!(run.run(8, 7_000).len(), 1);
}

#[test]
fn a_gap_neither_fires_nor_resolves() {
    let mut run = AlertSimulation::new(&["exchange.p50 > 5ms for 3s over 2s"]);
    let gap = SimulatedSecond { exchanges: 200, latency_us: 7_000, is_whole: false };
    run.run(3, 7_000);
    assert_eq!(run.second(gap), []);
    let [(at, _)] = &run.run(10, 7_000)[..] else { panic!("not once") };
    assert_eq!(*at, 5, "two seconds fill the window, and the time begins anew");
    assert_eq!(run.second(SimulatedSecond { latency_us: 1_000, ..gap }), [], "still firing");
    assert_eq!(run.run(3, 1_000).len(), 1);
}

#[test]
fn a_percentile_of_too_few_samples_does_not_fire_and_says_so_once() {
    let mut run = AlertSimulation::new(&["response.p99 > 5ms over 2s"]);
    let few = SimulatedSecond { exchanges: 50, latency_us: 7_000, is_whole: true };
    let news: Vec<AlertUpdate> = (0..10).flat_map(|_| run.second(few)).collect();
    let [AlertUpdate::Notice(notice)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(
        notice.text,
        "alert response.p99 > 5ms over 2s is not evaluated: 50 samples over 2 s of the 1000 that it takes; \
         a longer window (over TIME) has more"
            .replace("50 samples", "100 samples")
    );
    let busy = SimulatedSecond { exchanges: 1_000, ..few };
    assert_eq!((0..5).flat_map(|_| records(run.second(busy))).count(), 1);
    assert_eq!((0..5).flat_map(|_| run.second(few)).count(), 0, "it neither resolves nor says so again");
}

#[test]
fn an_alert_at_the_resolution_of_a_log_is_judged_only_where_it_tells() {
    let texts = ["exchange.p50 > 0.5ms over 1s", "exchange.p50 < 5ms over 1s", "exchange.p50 > 3ms over 1s"];
    let mut run = AlertSimulation::new(&texts);
    let alerts = texts.map(alert);
    run.alerts = Alerts::new(&alerts, 0, all().with_resolution(TimeResolution::from_us(1_000))).unwrap();
    let second = SimulatedSecond { exchanges: 200, latency_us: 1_000, is_whole: true };
    let news: Vec<AlertUpdate> = (0..5).flat_map(|_| run.second(second)).collect();
    let [AlertUpdate::Notice(notice), AlertUpdate::Transition(fired)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(
        notice.text,
        "alert exchange.p50 > 0.5ms over 1s is not evaluated: it is at most 1 ms, at the log's resolution; a higher limit \
         can be judged"
    );
    assert_eq!(fired.sentence.0, "alert: exchange.p50 is at most 1 ms < 5 ms (over 1 s)");
    assert_eq!(fired.known(fired.value), KnownValue::AtMost { at_most: 1_000.0 });
    let fired: Vec<u64> = run.run(3, 20_000).into_iter().map(|(_, record)| record.number).collect();
    assert_eq!(fired, [1, 2, 3], "20 ms tells: the second one resolves");
    let resolved = run.run(3, 1_000);
    assert_eq!(resolved.len(), 2, "the first one goes on firing: {resolved:?}");
    let sentence = &resolved.last().unwrap().1.sentence.0;
    assert!(sentence.starts_with("alert resolved: exchange.p50 is at most 1 ms; worst 20 ms"), "{sentence}");
}

#[test]
fn a_load_that_does_not_measure_neither_fires_nor_resolves() {
    let mut run = AlertSimulation::new(&["requests.rate < 100/s over 2s", "exchanges.rate < 100/s over 2s"]);
    let idle = SimulatedSecond { exchanges: 0, latency_us: 1, is_whole: true };
    run.run(3, 1_000);
    run.load.running = false;
    let numbers: Vec<u64> =
        (0..5).flat_map(|_| records(run.second(idle))).map(|record| record.number).collect();
    assert_eq!(numbers, [2], "the proxy measures what there is");
    run.load.running = true;
    assert_eq!(
        (0..5).flat_map(|_| records(run.second(idle))).map(|record| record.number).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn every_kind_of_figure_has_its_value_over_the_window() {
    for (text, value) in [
        ("exchange.n > 0 over 4s", 800.0),
        ("exchanges.rate > 0 over 4s", 200.0),
        ("proxy.bytes.out > 0 over 4s", 800_000.0),
        ("bytes.rate > 0 over 4s", 200_000.0),
        ("http.requests > 0 over 4s", 800.0),
        ("http.requests.rate > 0 over 4s", 200.0),
        ("http.status.5xx > 0 over 4s", 800.0),
        ("http.upstream.n > 0 over 4s", 800.0),
        ("proxy.http.upstream.max > 0s over 4s", 1_000.0),
        ("http.cpu.per_request > 0s over 4s", 1_250.0),
        // One more each second.
        ("http.open > 0 over 4s", 5.0),
        ("rate.achieved > 0 over 4s", 200.0),
        ("status.5xx > 0 over 4s", 800.0),
        ("cpu.per_exchange > 0s over 4s", 1_250.0),
        ("cpu.proxy > 0s over 4s", 1.0),
        ("seconds > 0s over 4s", 4.0),
        // One of two connections of each second stays open; the run began in second 0.
        ("connections.open > 0 over 4s", 5.0),
        ("connections.open > 0 over 100ms", 2.0),
    ] {
        let mut run = AlertSimulation::new(&[text]);
        let found = run.run(6, 1_000);
        let [(_, fired)] = &found[..] else { panic!("{text}: {found:?}") };
        assert!((fired.value - value).abs() <= value * 1e-6, "{text}: {fired:?}");
    }
}

#[test]
fn short_intervals_of_a_long_window_are_added_up() {
    let mut run = AlertSimulation::new(&["exchange.n > 0 over 10m"]);
    let found = run.run(610, 1_000);
    let [(at, fired)] = &found[..] else { panic!("{found:?}") };
    assert!((595..=600).contains(at), "{at}");
    assert!((fired.value / 120_000.0 - 1.0).abs() < 0.02, "{fired:?}");
}

#[test]
fn an_alert_is_a_setting_that_can_be_changed_and_switched_off() {
    let mut run = AlertSimulation::new(&["exchange.p50 > 5ms over 1s"]);
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(run.alerts.settings()[0].value, text("exchange.p50 > 5ms over 1s"));
    assert_eq!(run.run(3, 7_000).len(), 1);
    let change = run.alerts.set("alert.1", &text("exchange.p50 > 50ms over 1s")).unwrap();
    assert_eq!(
        (change.before.value, change.after.value),
        (text("exchange.p50 > 5ms over 1s"), text("exchange.p50 > 50ms over 1s"))
    );
    let withdrawn = change.withdrawn.unwrap();
    assert_eq!((withdrawn.number, withdrawn.state), (1, AlertState::Withdrawn));
    assert_eq!(run.run(3, 7_000), []);
    assert_eq!(run.alerts.set("alert.1", &text("off")).unwrap().after.value, text("off"));
    assert_eq!(
        run.alerts.set("alert.1", &text("exchange.p50 > 5ms over 1s")).unwrap().before.value,
        text("off")
    );
    assert_eq!(run.run(3, 7_000).len(), 1);
    for (name, value, part) in [
        ("alert.2", "errors > 0", "there is no setting alert.2"),
        ("alert.0", "errors > 0", "there is no setting alert.0"),
        ("alert.1", "errors", "alert.1 cannot be errors: expected <, <="),
    ] {
        let error = run.alerts.set(name, &text(value)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn alerts_are_of_one_route_where_they_name_it() {
    let mut run = AlertSimulation::new(&[
        "http.route.\"/=/ for\".status.5xx.ratio > 90% over 2s",
        "proxy.http.route.\"/=/ for\".upstream.p50 > 5ms over 2s",
        "http.route.\"/api\".requests > 0 over 2s",
    ]);
    assert_eq!(run.run(3, 1_000).into_iter().map(|(_, fired)| fired.number).collect::<Vec<_>>(), [1]);
    let fired = run.run(3, 7_000);
    assert_eq!(fired.iter().map(|(_, fired)| fired.number).collect::<Vec<_>>(), [2]);
    assert_eq!(fired[0].1.figure, "proxy.http.route.\"/=/ for\".upstream.p50");
    let error = WatchedAlert::new(alert("http.route.\"/x\".failed > 0"), &all()).err().unwrap();
    assert_eq!(error.to_string(), "the run has no route /x; it has /api, /=/ for");
}

#[test]
fn too_many_alerts_and_alerts_on_what_a_run_lacks_are_refused() {
    let many = vec![alert("errors > 0"); ALERTS_MAX + 1];
    let refused = |alerts: &[Alert]| {
        Alerts::new(alerts, 0, FigureSubjects::new(vec![FigureSide::Run], &[], &[])).unwrap_err().to_string()
    };
    assert_eq!(refused(&many), "33 alerts; a run has at most 32");
    assert_eq!(refused(&[alert("response.p99 > 5ms")]), "response.p99 > 5ms: the run has no load");
    assert_eq!(Alerts::new(&many[1..], ALERTS_SPARE, all()).unwrap().settings().len(), ALERTS_MAX);
    assert_eq!(Alerts::new(&[], ALERTS_SPARE, all()).unwrap().settings().len(), ALERTS_SPARE);
}
