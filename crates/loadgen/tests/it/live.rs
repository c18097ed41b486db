//! What changes while the load runs, and how it ends.

use std::time::{Duration, Instant};

use loadgen::{Load, LoadConfig, Template};
use records::delta::LoadDelta;
use records::metrics::{LoadCounter as C, LoadLatency as L};
use records::setting::{Applies, SettingError, Value};

use crate::support::{
    ServerAction, TestServer, TlsVersion, assert_adds_up, collect_until, config, eventually, finish,
};

fn value(load: &Load, name: &str) -> Value {
    load.settings().into_iter().find(|setting| setting.name == name).unwrap().value
}

#[test]
fn the_rate_changes_live() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let mut load = Load::start(config(&server, "rate=1,connections=4")).unwrap();
    let mut all = LoadDelta::default();
    let before = load.set("load.rate", &Value::Number(2_000.0)).unwrap();
    assert_eq!((before.value, before.applies), (Value::Number(1.0), Applies::Live));
    assert_eq!(value(&load, "load.rate"), Value::Number(2_000.0));
    let begun = Instant::now();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] >= 1_000);
    // A thousand requests at 1/s would take a quarter of an hour; at 2,000/s half a second.
    assert!(begun.elapsed() >= Duration::from_millis(450));
    load.stop();
    let rest = finish_on_top(&mut load, &mut all);
    assert_adds_up(&rest.counters);
    assert_eq!(rest.counters[C::Ok], server.seen().requests);
}

/// Collects the rest of a load into what was collected before.
fn finish_on_top<'a>(load: &mut Load, all: &'a mut LoadDelta) -> &'a LoadDelta {
    collect_until(load, all, |_, ended| ended);
    all
}

#[test]
fn a_pause_drains_closes_and_leaves_no_backlog_behind() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(10));
    let begun = Instant::now();
    let mut load = Load::start(config(&server, "rate=1000,connections=8")).unwrap();
    let mut all = LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] >= 100);
    load.set("load.running", &Value::Flag(false)).unwrap();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == counts[C::Closed]);
    assert_adds_up(&all.counters);
    let seen = server.seen();
    assert_eq!(seen.clean_ends, seen.connections, "each connection is closed in order");
    assert_eq!(value(&load, "load.running"), Value::Flag(false));

    let paused = Instant::now();
    eventually("half a second of pause", || paused.elapsed() > Duration::from_millis(500));
    let scheduled = all.counters[C::Scheduled];
    load.collect(&mut all, Duration::from_secs(1));
    assert_eq!(all.counters[C::Scheduled], scheduled, "nothing falls due in a pause");
    load.set("load.running", &Value::Flag(true)).unwrap();
    let resumed = Instant::now();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] >= seen.requests + 50);
    let due_since = resumed.elapsed().as_millis() as u64 + 10;
    assert!(all.counters[C::Scheduled] - scheduled <= due_since, "a burst after the pause");
    load.stop();
    assert_adds_up(&finish_on_top(&mut load, &mut all).counters);
    let scheduled = load.measured().scheduled;
    assert!(scheduled + Duration::from_millis(500) < begun.elapsed(), "{scheduled:?} without the pause");
    assert!(all.counters[C::Scheduled].abs_diff(scheduled.as_millis() as u64) <= 2, "{scheduled:?}");
}

#[test]
fn a_load_that_starts_paused_waits_to_be_switched_on() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let config = config(&server, "connections=2,duration=200ms");
    let mut load = Load::start(LoadConfig { paused: true, ..config }).unwrap();
    let mut all = LoadDelta::default();
    load.collect(&mut all, Duration::from_secs(1));
    assert_eq!(all.counters[C::Scheduled], 0);
    assert!(!load.is_finished());
    let begun = Instant::now();
    load.set("load.running", &Value::Flag(true)).unwrap();
    let rest = finish(&mut load);
    assert!(begun.elapsed() >= Duration::from_millis(200), "pauses do not count into the duration");
    assert!(rest.counters[C::Ok] > 0);
}

#[test]
fn the_resumption_ratio_changes_for_new_connections() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let mut load = Load::start(config(&server, "connections=1,keep-alive=off")).unwrap();
    let mut all = LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::HandshakesFull] >= 20);
    assert_eq!(all.counters[C::HandshakesResumed], 0);
    let before = load.set("load.resume", &Value::Number(100.0)).unwrap();
    assert_eq!((before.value, before.applies), (Value::Number(0.0), Applies::NewConnections));
    collect_until(&mut load, &mut all, |counts, _| counts[C::HandshakesResumed] >= 20);
    load.stop();
    let full = all.counters[C::HandshakesFull];
    assert_eq!(finish_on_top(&mut load, &mut all).counters[C::HandshakesFull], full);
}

#[test]
fn connections_come_and_go_while_the_load_runs() {
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(2));
        ServerAction::ok(1)
    });
    let mut load = Load::start(config(&server, "connections=2,threads=2")).unwrap();
    let mut all = LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == 2 && counts[C::Ok] > 10);
    let before = load.set("load.connections", &Value::Number(9.0)).unwrap();
    assert_eq!((before.value, before.applies), (Value::Number(2.0), Applies::Live));
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == 9);
    load.set("load.connections", &Value::Number(3.0)).unwrap();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Closed] == 6);
    load.stop();
    let counts = finish_on_top(&mut load, &mut all).counters;
    assert_eq!((counts[C::Opened], counts[C::Failed], counts[C::Retried]), (9, 0, 0), "{counts:?}");
    assert_eq!(server.seen().clean_ends, 9);
}

#[test]
fn keepalive_and_body_size_change_while_the_load_runs() {
    let server = TestServer::plain(|exchange| ServerAction::ok(exchange.body_bytes as usize));
    let requests = vec![Template::post("/echo", 10)];
    let mut load = Load::start(LoadConfig { requests, ..config(&server, "connections=1") }).unwrap();
    let mut all = LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] > 10);
    assert_eq!((all.counters[C::Opened], all.counters[C::BodyIn] / all.counters[C::Sent]), (1, 10));
    load.set("load.keep-alive", &Value::Text("off".into())).unwrap();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] > 5);
    load.set("load.body", &Value::Number(1_000_000.0)).unwrap();
    collect_until(&mut load, &mut all, |counts, _| counts[C::BodyOut] > 3_000_000);
    load.stop();
    let counts = finish_on_top(&mut load, &mut all).counters;
    assert_eq!(counts[C::Failed], 0, "{counts:?}");
    assert_eq!(counts[C::BytesIn], server.seen().bytes_in);
}

#[test]
fn settings_refuse_invalid_values() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let load = Load::start(config(&server, "rate=10,connections=1,source-addresses=3")).unwrap();
    for (name, value) in [
        ("load.rate", Value::Number(0.0)),
        ("load.rate", Value::Number(f64::NAN)),
        ("load.rate", Value::Number(1e12)),
        ("load.rate", Value::Text("fast".into())),
        ("load.resume", Value::Number(-1.0)),
        ("load.resume", Value::Number(101.0)),
        ("load.running", Value::Number(1.0)),
    ] {
        let refused = load.set(name, &value);
        assert!(matches!(refused, Err(SettingError::Refused { .. })), "{name} {value}");
    }
    for (name, value) in [
        ("load.connections", Value::Number(0.0)),
        ("load.connections", Value::Number(1.5)),
        ("load.keep-alive", Value::Text("maybe".into())),
    ] {
        let refused = load.set(name, &value);
        assert!(matches!(refused, Err(SettingError::Refused { .. })), "{name} {value}");
    }
    for name in ["load.threads", "load.target", "load.body"] {
        let fixed = load.set(name, &Value::Number(2.0));
        assert!(matches!(fixed, Err(SettingError::Restart(_) | SettingError::Unknown(_))), "{name}");
    }
    assert_eq!(load.set("load.x", &Value::Flag(true)), Err(SettingError::Unknown("load.x".into())));
    let names: Vec<_> = load.settings().into_iter().map(|setting| setting.name).collect();
    for name in [
        "load.running",
        "load.rate",
        "load.resume",
        "load.connections",
        "load.keep-alive",
        "load.source-addresses",
    ] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    let closed = Load::start(config(&server, "connections=1")).unwrap();
    assert!(matches!(closed.set("load.rate", &Value::Number(5.0)), Err(SettingError::Refused { .. })));
    closed.stop();
    assert!(matches!(closed.set("load.running", &Value::Flag(true)), Err(SettingError::Refused { .. })));
}

#[test]
fn a_stop_lets_requests_in_flight_finish() {
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(300));
        ServerAction::ok(1)
    });
    let mut load = Load::start(config(&server, "connections=5")).unwrap();
    eventually("all requests are on their way", || server.requests() == 5);
    load.stop();
    let all = finish(&mut load);
    assert_eq!((all.counters[C::Scheduled], all.counters[C::Ok]), (5, 5));
    assert_eq!(server.seen().clean_ends, 5);
}

#[test]
fn a_stop_does_not_wait_for_a_stalled_server() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::Stall);
    let mut load = Load::start(config(&server, "connections=3")).unwrap();
    eventually("all requests are on their way", || server.requests() == 3);
    load.stop();
    let begun = Instant::now();
    let all = finish(&mut load);
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert_eq!((all.counters[C::Unfinished], all.counters[C::Ok]), (3, 0));
    assert_eq!(all.latencies[L::Service].count(), 3);
    assert!(all.latencies[L::Service].max_ns() >= 1_900_000_000);
}

#[test]
fn dropping_a_load_ends_it_at_once() {
    let server = TestServer::plain(|_| ServerAction::Stall);
    let load = Load::start(config(&server, "connections=3,threads=2")).unwrap();
    eventually("all requests are on their way", || server.requests() == 3);
    let begun = Instant::now();
    drop(load);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(server.seen().connections, 3, "the connections are gone too");
}

#[test]
fn threads_carry_the_names_that_cpu_time_is_grouped_by() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let _load = Load::start(config(&server, "connections=2,threads=2")).unwrap();
    eventually("both threads are there", || {
        let names: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .collect();
        names.contains(&"load-0\n".to_owned()) && names.contains(&"load-1\n".to_owned())
    });
}

#[test]
fn a_stop_under_overload_cuts_no_request() {
    // A server that takes its time: the schedule asks for ten times what it can do.
    let server = TestServer::tls(TlsVersion::V13, |_| {
        std::thread::sleep(Duration::from_millis(20));
        ServerAction::ok(10)
    });
    let mut load = Load::start(config(&server, "rate=1000,connections=2")).unwrap();
    let mut all = LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Scheduled] >= 2_000);
    load.stop();
    let counts = finish_on_top(&mut load, &mut all).counters;
    assert_adds_up(&counts);
    assert_eq!((counts[C::Unfinished], counts[C::Failed]), (0, 0), "{counts:?}");
    assert!(counts[C::NeverSent] > 0, "{counts:?}");
    let seen = server.seen();
    assert_eq!(seen.clean_ends, seen.connections, "each connection is closed in order");
}

#[test]
fn the_measured_time_covers_each_collections_counts() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let mut load = Load::start(config(&server, "rate=2000,connections=4")).unwrap();
    let mut all = LoadDelta::default();
    for _ in 0..300 {
        std::thread::sleep(Duration::from_millis(5));
        load.collect(&mut all, Duration::from_secs(10));
        let scheduled = load.measured().scheduled;
        let most = (scheduled.as_secs_f64() * 2_000.0) as u64 + 2;
        assert!(all.counters[C::Scheduled] <= most, "{} in {scheduled:?}", all.counters[C::Scheduled]);
    }
}
