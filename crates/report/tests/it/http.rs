//! Reports on a run in HTTP mode.

use records::kinds::HttpVersion;
use std::time::Duration;

use crate::common::{HOST, HOSTILE, at};
use model::runs::Model;
use recorder::publish::Publisher;
use records::delta::{FinishedRequest, HttpDelta, ProxyDelta};
use records::ids::{ClientId, ConnId, RunId};
use records::kinds::RunRecord;
use records::metrics::RequestFailure;
use report::{Assertion, AssertionOutcome, CompareOptions, Figures, Report, comparison};

/// Thirty seconds with so many milliseconds at the upstream, on two routes with hostile names.
fn model(id: u128, upstream_ms: u64) -> Model {
    model_with_first_byte(id, upstream_ms, None)
}

/// With a first byte, one request of a hundred is malformed and has none. Without, one is served without an upstream, as in
/// a log.
fn model_with_first_byte(id: u128, upstream_ms: u64, first_byte: Option<Duration>) -> Model {
    let mut publisher = Publisher::new(RunId::from_bits(id), Vec::new(), 60, at(0));
    publisher.name_routes(vec!["/".to_owned(), format!("{HOST}/{HOSTILE}")]);
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=30 {
        let mut http = HttpDelta::default();
        for n in 0..100 {
            let failure = match n {
                7 => Some(RequestFailure::UpstreamTimeout),
                9 if first_byte.is_some() => Some(RequestFailure::Malformed),
                _ => None,
            };
            let is_malformed = failure == Some(RequestFailure::Malformed);
            http.finish(&FinishedRequest {
                route: Some(n % 2),
                conn: ConnId(1),
                client: ClientId::Other,
                version: HttpVersion::Http2,
                method: "GET",
                path: HOSTILE,
                upstream: HOST,
                status: Some(failure.map_or(200, |_| if is_malformed { 400 } else { 504 })),
                grpc_status: None,
                failure,
                queue: None,
                upstream_time: (n != 11 || first_byte.is_some())
                    .then(|| Duration::from_micros(upstream_ms * 1_000 + n as u64)),
                first_byte: first_byte.filter(|_| !is_malformed),
                duration: Some(Duration::from_millis(upstream_ms + 1)),
                body_in: Some(0),
                body_out: Some(10_000),
                is_reused: true,
                is_retried: false,
            });
        }
        let delta = ProxyDelta { http: Some(Box::new(http)), ..ProxyDelta::default() };
        publisher.interval(Some(&delta), None, None, at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(31));
    crate::common::read(publisher.into_sink(), 100, |_| false)
}

fn report(model: &Model) -> Report<'_> {
    Report::new(model, model.current().unwrap(), "file:x.journal", "tlsdash report".to_owned())
}

#[test]
fn what_a_request_waits_for_an_upstream_connection_is_in_the_headline() {
    let model = model_with_first_byte(2, 2, Some(Duration::from_secs(1)));
    let report = report(&model);
    assert!(report.html().contains("Proxy: HTTP first byte"));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["headline"][1]["title"], "HTTP first byte p99");
    assert_eq!(json["headline"][1]["value"], "1,000 ms");
    let score = |json: &serde_json::Value| json["apdex"]["score"].as_f64().unwrap();
    assert!((score(&json) - 0.49).abs() < 1e-9, "half of those that did not fail: {}", json["apdex"]);
    let model = model_with_first_byte(3, 2, Some(Duration::from_millis(1)));
    let json: serde_json::Value = serde_json::from_str(&self::report(&model).json().unwrap()).unwrap();
    assert!((score(&json) - 0.98).abs() < 1e-9, "fast failures are none too: {}", json["apdex"]);
}

#[test]
fn a_report_has_routes_statuses_and_failures_of_http_mode() {
    let model = model(1, 2);
    let report = report(&model);
    let (html, markdown, csv) = (report.html(), report.markdown(), report.csv());
    crate::common::assert_harmless(&html);
    for part in ["<h2>HTTP</h2>", "Proxy: HTTP upstream", "Proxy: HTTP responses", "upstream-timeout"] {
        assert!(html.contains(part), "{part}");
    }
    for part in [
        "| 504 | 30 |",
        "| 200 | 2,970 |",
        "| HTTP request | upstream-timeout | 30 | GET ",
        "| / | 1,500 |",
        "| Failed requests | 30 |",
    ] {
        assert!(markdown.contains(part), "{part} in\n{markdown}");
    }
    assert!(csv.contains("http,0,1,0,latency,http.upstream,99,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["http_intervals"].as_array().unwrap().len(), 31);
    let score = json["apdex"]["score"].as_f64().unwrap();
    assert!((score - 0.98).abs() < 1e-9, "a failure counts beside one without an upstream: {score}");
    let http = &json["summary"]["proxy"]["http"];
    assert_eq!((&http["requests"]["total"], &http["statuses"]["504"]), (&3_000.into(), &30.into()));
    assert_eq!(http["routes"][0]["latency_us"]["upstream"]["n"], 1_500);
}

#[test]
fn an_anonymous_report_names_no_route_and_no_path() {
    let model = model(1, 2);
    let report = report(&model).anonymised();
    for form in [report.html(), report.markdown(), report.json().unwrap(), report.csv()] {
        assert!(!form.contains(HOST) && !form.contains("alert(1)"), "{form}");
    }
    assert!(report.markdown().contains("| route 2 | 1,500 |"));
}

#[test]
fn two_runs_in_http_mode_are_compared_by_their_upstreams() {
    let (a, b) = (model(1, 2), model(2, 3));
    let how = CompareOptions {
        metrics: Vec::new(),
        block: Some(Duration::from_secs(2)),
        discard: Some(Duration::ZERO),
        force: false,
    };
    let (a, b) = (report(&a), report(&b));
    let text = comparison(&a, &b, &how, "tlsdash compare").unwrap().text();
    assert!(text.contains("http.upstream.p50") && text.contains("+48"), "{text}");
}

#[test]
fn conditions_on_one_route_hold_against_its_own_figures() {
    let model = model(1, 2);
    let figures = Figures::of(&model, model.current().unwrap(), None);
    let check = |text: &str| {
        let assertion: Assertion = text.parse().unwrap();
        assertion.is_known(&figures).map(|()| assertion.check(&figures)).map_err(|error| error.to_string())
    };
    // The one request in a hundred that fails is of the other route.
    for text in [
        "proxy.http.route.\"/\".failed == 0",
        "proxy.http.route.\"/\".requests == 1500",
        "http.route.\"/\".request.p99 < 5ms",
        "http.route.\"/\".requests.rate > 10/s",
        "http.route.\"/\".status.5xx.ratio < 1%",
    ] {
        assert_eq!(check(text), Ok(AssertionOutcome::Holds), "{text}");
    }
    let failed = check("http.route.\"/\".request.p99 > 5ms");
    assert!(matches!(failed, Ok(AssertionOutcome::Breached(_))), "{failed:?}");
    let error = check("proxy.http.route.\"/api\".failed == 0").unwrap_err();
    assert!(error.contains("the run has no route /api; it has /, "), "{error}");
}
