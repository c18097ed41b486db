use records::delta::{LoadDelta, LoadState};
use records::metrics::LoadCounter as C;
use records::metrics::LoadLatency;

use super::*;
use crate::tests::load_run::model;

fn shown(style: ReportStyle) -> String {
    let (model, run) = model(|_, _| {});
    let text = report(model.run(run).unwrap(), style).unwrap();
    assert!(text.contains("# insecure: "), "{text}");
    text
}

/// The columns of the line that begins with these words.
fn line(text: &str, begin: &str) -> String {
    let found = text.lines().find(|line| line.trim_start().starts_with(begin));
    found.unwrap_or_else(|| panic!("{begin} in {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn vegeta_has_its_figures() {
    let text = shown(ReportStyle::Vegeta);
    assert_eq!(line(&text, "Requests"), "Requests [total, rate, throughput] 1000, 50.00, 49.50");
    assert_eq!(line(&text, "Duration"), "Duration [total, attack, wait] 20s, 20s, 0s");
    assert_eq!(line(&text, "Bytes In"), "Bytes In [total, mean] 12000, 12.00");
    assert_eq!(line(&text, "Success"), "Success [ratio] 99.00%");
    assert_eq!(line(&text, "Status Codes"), "Status Codes [code:count] 200:990 503:10");
    assert_eq!(line(&text, "status 503"), "status 503 (10): GET /busy");
    assert!(line(&text, "Latencies").contains("1.4945ms, 1.494"), "{text}");
}

#[test]
fn h2load_has_its_figures() {
    let text = shown(ReportStyle::H2load);
    assert_eq!(line(&text, "finished"), "finished in 20.00s, 50.00 req/s, 5.47KB/s");
    let requests =
        "requests: 1000 total, 1000 started, 1000 done, 990 succeeded, 10 failed, 0 errored, 0 timeout";
    assert_eq!(line(&text, "requests"), requests);
    assert_eq!(line(&text, "status codes"), "status codes: 990 2xx, 0 3xx, 0 4xx, 10 5xx");
    assert!(line(&text, "traffic").contains("(space savings 75.00%)"), "{text}");
    assert!(line(&text, "time for request").starts_with("time for request: 1000us 1.99ms 1.49ms"), "{text}");
}

#[test]
fn a_status_from_600_on_is_a_servers_error_in_the_style_and_in_the_figure() {
    let (model, run) = model(|delta, _| {
        delta.events.count(records::values::LoadEvent::Status(999), || "GET /odd".to_owned());
    });
    let run = model.run(run).unwrap();
    let text = report(run, ReportStyle::H2load).unwrap();
    assert_eq!(line(&text, "status codes"), "status codes: 990 2xx, 0 3xx, 0 4xx, 11 5xx");
    let figure: model::figures::FigureName = "load.status.5xx".parse().unwrap();
    assert_eq!(figure.figures().next().unwrap().value(run, None), Some(11.0));
}

#[test]
fn an_open_loop_shows_corrected_times_in_every_style() {
    // A stall: each tenth request was sent late and then answered at once.
    let stall = |delta: &mut LoadDelta, _: &mut LoadState| {
        (0..110).for_each(|_| delta.latencies[LoadLatency::Response].record_ns(936_000_000));
        for class in [LoadLatency::Service, LoadLatency::Total, LoadLatency::FirstByte] {
            (0..110).for_each(|_| delta.latencies[class].record_ns(2_000_000));
        }
    };
    let (model, run) = model(stall);
    for (style, rows) in [
        (ReportStyle::Vegeta, &[("Latencies", "936")][..]),
        (ReportStyle::Wrk, &[("99%", "936"), ("# latency", ", corrected")]),
        (ReportStyle::Jmeter, &[("https", "936"), ("# times in ms", ", corrected")]),
        (ReportStyle::H2load, &[("time for request", "936"), ("# time for request", ", corrected")]),
        (
            ReportStyle::Ab,
            &[
                ("Total:", "936"),
                ("99%", "936"),
                ("# Total and", ", corrected"),
                ("Time per request", ": - [ms] (mean)"),
                ("# Response", "936"),
            ],
        ),
    ] {
        let text = report(model.run(run).unwrap(), style).unwrap();
        for (begin, part) in rows {
            assert!(line(&text, begin).contains(part), "{style:?} {begin}: {text}");
        }
    }
}

#[test]
fn ab_and_wrk_and_jmeter_have_theirs() {
    let ab = shown(ReportStyle::Ab);
    assert_eq!(line(&ab, "Complete"), "Complete requests: 1000");
    assert_eq!(line(&ab, "Keep-Alive"), "Keep-Alive requests: 996");
    assert_eq!(line(&ab, "Non-2xx"), "Non-2xx responses: 10");
    assert_eq!(line(&ab, "Failed"), "Failed requests: 0");
    assert_eq!(line(&ab, "Document Path"), "Document Path: /x");
    assert_eq!(line(&ab, "99%"), "99% 2");
    assert!(
        line(&ab, "# Total:").starts_with("# Total: 0.9") && line(&ab, "# Total:").ends_with(" 990"),
        "{ab}"
    );
    let wrk = shown(ReportStyle::Wrk);
    assert_eq!(line(&wrk, "2 threads"), "2 threads and 4 connections");
    assert_eq!(line(&wrk, "Requests/sec"), "Requests/sec: 50.00");
    let jmeter = shown(ReportStyle::Jmeter);
    let values = line(&jmeter, "https://localhost:8443/x");
    assert!(values.contains(" 1000 1.49") && values.contains(" 1.000 50.00000 5.47 "), "{jmeter}");
}

#[test]
fn warnings_name_what_makes_the_figures_doubtful() {
    let notes = |change: fn(&mut LoadDelta, &mut LoadState)| {
        let (model, run) = model(change);
        report(model.run(run).unwrap(), ReportStyle::Wrk).unwrap()
    };
    let late = notes(|delta, _| delta.counters[C::Late] = 100);
    assert!(late.contains("# generator-bound: it took on 10.0 % of the requests"), "{late}");
    let beyond = notes(|delta, _| {
        delta.counters[C::Scheduled] += 500;
        delta.counters[C::NeverSent] = 500;
        delta.counters[C::Throttled] = 400;
    });
    assert!(beyond.contains("# rate not achieved: 75.0/s were wanted and 50.0/s answered; 500"), "{beyond}");
    assert!(beyond.contains("# throttled: ") && beyond.contains("400 requests were not sent"), "{beyond}");
    let closed = notes(|delta, state| {
        delta.latencies[LoadLatency::Response].clear();
        state.due_us = 0;
    });
    assert!(closed.contains("# closed loop: ") && closed.contains("uncorrected"), "{closed}");
}

#[test]
fn a_failed_request_is_not_counted_as_a_response() {
    let (model, run) = model(|delta, _| {
        let counters = &mut delta.counters;
        counters[C::Scheduled] += 30;
        counters[C::Sent] += 20;
        counters[C::Failed] += 30;
        (counters[C::FailedTimeout], counters[C::FailedReset], counters[C::FailedConnect]) = (10, 10, 10);
    });
    for (style, begin, expected) in [
        (ReportStyle::H2load, "finished", "finished in 20.00s, 50.00 req/s, 5.47KB/s"),
        (
            ReportStyle::H2load,
            "requests",
            "requests: 1030 total, 1020 started, 1000 done, 990 succeeded, 40 failed, 20 errored, 10 timeout",
        ),
        (ReportStyle::Ab, "Complete", "Complete requests: 1000"),
        (ReportStyle::Ab, "Failed", "Failed requests: 30"),
        (ReportStyle::Ab, "Requests per second", "Requests per second: 50.00 [#/sec] (mean)"),
        (ReportStyle::Wrk, "Requests/sec", "Requests/sec: 50.00"),
        (ReportStyle::Wrk, "1000 requests", "1000 requests in 20.00s, 109.38KB read"),
        (ReportStyle::Ab, "(Connect:", "(Connect: 10, Receive: 20, Length: 0, Exceptions: 0)"),
        (ReportStyle::H2load, "req/s", "req/s : - - 12.50 - -"),
        (ReportStyle::Vegeta, "Requests", "Requests [total, rate, throughput] 1030, 51.50, 49.50"),
    ] {
        let text = report(model.run(run).unwrap(), style).unwrap();
        assert_eq!(line(&text, begin), expected, "{style:?}");
    }
    let jmeter = report(model.run(run).unwrap(), ReportStyle::Jmeter).unwrap();
    assert!(line(&jmeter, "https://localhost:8443/x").contains(" 50.00000 "), "{jmeter}");
}

#[test]
fn a_load_without_answers_has_no_times() {
    let (model, run) = model(|delta, _| {
        let scheduled = 1_000;
        *delta = LoadDelta::default();
        delta.counters[C::Scheduled] = scheduled;
        delta.counters[C::Failed] = scheduled;
        delta.counters[C::FailedConnect] = scheduled;
    });
    for (style, rows) in [
        (
            ReportStyle::Vegeta,
            &[
                ("Latencies", "Latencies [min, mean, 50, 90, 95, 99, max] -, -, -, -, -, -, -"),
                ("Bytes In", "Bytes In [total, mean] 0, -"),
                ("Success", "Success [ratio] 0.00%"),
            ][..],
        ),
        (ReportStyle::H2load, &[("time for request", "time for request: - - - - -")]),
        (
            ReportStyle::Ab,
            &[
                ("Document Length", "Document Length: - bytes"),
                ("Time per request", "Time per request: - [ms] (mean)"),
                ("50%", "50% -"),
                ("100%", "100% - (longest request)"),
            ],
        ),
        (
            ReportStyle::Wrk,
            &[("Latency ", "Latency - - - -"), ("99%", "99% -"), ("Requests/sec", "Requests/sec: 0.00")],
        ),
        (
            ReportStyle::Jmeter,
            &[(
                "https://localhost:8443/x",
                "https://localhost:8443/x 1000 - - - - 100.000 0.00000 0.00 0.00 -",
            )],
        ),
    ] {
        let text = report(model.run(run).unwrap(), style).unwrap();
        for (begin, expected) in rows {
            assert_eq!(line(&text, begin), *expected, "{style:?}");
        }
        for nothing in ["0ns", "0us", "0.00us", " 0.000 ", "NaN", "inf"] {
            assert!(!text.contains(nothing), "{nothing:?} in {text}");
        }
    }
}
