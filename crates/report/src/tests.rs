use super::*;
use crate::report::latency::ClassLatency;
use load_run::model;
use records::histogram::Histogram;
use records::metrics::TimeResolution;

#[path = "../../model/tests/load_run/mod.rs"]
pub(crate) mod load_run;

fn check(assertion: &str) -> AssertionOutcome {
    let (model, run) = model(|_, _| {});
    assertion.parse::<Assertion>().unwrap().check(&Figures::of(&model, model.run(run).unwrap(), None))
}

#[test]
fn assertions_hold_or_say_why_not() {
    for good in [
        "response.p90 < 5ms",
        "response.p99<=2ms",
        "service.max < 0.002s",
        "errors == 10",
        "status.5xx != 0",
        "rate.achieved >= 49.9",
        "total.n == 990",
        "load.total.n == 990",
        "load.requests.ok == 990",
        "requests.ok > 99",
        "response.max < 1m",
        "response.max < 0.5h",
        "seconds >= 19",
        "seconds < 1m",
        "generator.busy <= 100%",
        "generator.busy <= 1",
        "failed.ratio < 1.1%",
        "requests.rate > 49",
        "never_sent == 0",
    ] {
        let expected = if good.contains("p99") {
            AssertionOutcome::Breached(String::new())
        } else {
            AssertionOutcome::Holds
        };
        let found = check(good);
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&expected), "{good}: {found:?}");
    }
    for (bad, reason) in [
        ("response.p50 < 1ms", "it is 1.494 ms, 49.4 % above"),
        ("rate.achieved > 100", "it is 50, 50.0 % below"),
        ("errors == 0", "it is 10"),
        ("ended == 0", "it is 1"),
        ("response.p99 < 5ms", "too few samples: 990 of the 1000"),
        ("response.p999 < 5ms", "too few samples: 990 of the 10000"),
        ("lag.max < 5ms", "no samples"),
        ("seconds > 1h", "it is 20, 99.4 % below"),
    ] {
        let AssertionOutcome::Breached(found) = check(bad) else { panic!("{bad} holds") };
        assert!(found.contains(reason), "{bad}: {found}");
    }
    let unknown = "speed > 5".parse::<Assertion>().unwrap_err().to_string();
    for part in ["speed > 5: there is no figure speed; others are", "rate.achieved"] {
        assert!(unknown.contains(part), "{unknown}");
    }
    for text in ["response.p99", "response.p99 < soon", "response.p99 = 5ms"] {
        assert!(text.parse::<Assertion>().is_err(), "{text}");
    }
}

#[test]
fn a_figure_of_what_the_run_lacks_is_refused() {
    let (model, run) = model(|_, _| {});
    let figures = Figures::of(&model, model.run(run).unwrap(), None);
    for (text, lacks) in [
        ("cpu.per_exchange < 50us", "proxy"),
        ("full.p99 < 5ms", ""),
        ("proxy.full.p99 < 5ms", "proxy"),
        ("lost == 0", "journal"),
    ] {
        let assertion: Assertion = text.parse().unwrap();
        let expected = if lacks.is_empty() { Ok(()) } else { Err(format!("{text}: the run has no {lacks}")) };
        for found in [assertion.is_known(&figures), assertion.is_known_of_load()] {
            assert_eq!(found.map_err(|error| error.to_string()), expected);
        }
    }
}

#[test]
fn a_value_of_another_unit_is_refused_with_what_to_write() {
    let (model, run) = model(|_, _| {});
    let figures = Figures::of(&model, model.run(run).unwrap(), None);
    for (text, expected) in [
        ("response.p99 < 5", "response.p99 is a time; write 'response.p99 < 5ms'"),
        ("response.max <= 90%", "response.max is a time; write 'response.max <= 90ms'"),
        ("errors < 5ms", "errors is a number; write 'errors < 5'"),
        ("requests.ok > 99%", "requests.ok is a number; write 'requests.ok > 99'"),
        ("seconds > 10%", "seconds is a time; write 'seconds > 10s'"),
        ("generator.busy < 90", "generator.busy is a share, from 0 to 1; write 'generator.busy < 90%'"),
        ("generator.busy < 900%", "generator.busy is a share, from 0 to 1; write 'generator.busy < 90%'"),
        ("generator.busy < 5ms", "generator.busy is a share, from 0 to 1; write 'generator.busy < 90%'"),
    ] {
        let assertion: Assertion = text.parse().unwrap();
        for refused in [assertion.is_known(&figures), assertion.is_known_of_load()] {
            assert_eq!(refused.unwrap_err().to_string(), format!("{text}: {expected}"));
        }
        assert_eq!(assertion.check(&figures), AssertionOutcome::Breached(expected.to_owned()));
    }
}

#[test]
fn the_files_of_hdrhistogram_hold_all_samples() {
    let (model, run) = model(|_, _| {});
    let run = model.run(run).unwrap();
    let percentiles = percentile_file(run).unwrap();
    assert!(
        percentiles.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"),
        "{percentiles}"
    );
    assert!(percentiles.contains("Total count    =          990]"), "{percentiles}");
    let last = percentiles.lines().rfind(|line| line.contains(" 1.000000000000 ")).unwrap();
    assert!(last.trim_end().ends_with(" 990"), "{last}");
    let (log, lacking) = interval_log(run).unwrap();
    assert_eq!(lacking, 0);
    let line = log.lines().last().unwrap();
    assert!(line.starts_with("Tag=response,0.000,20.000,1.989,HISTFAAA"), "{line}");
}

#[test]
fn what_has_no_samples_is_a_dash_and_not_nothing() {
    let (model, run) = model(|delta, _| delta.latencies = records::histogram::Histograms::default());
    let percentiles = percentile_file(model.run(run).unwrap()).unwrap();
    for part in [
        "#[Mean    =            -, StdDeviation   =            -]",
        "#[Max     =            -, Total count    =            0]",
    ] {
        assert!(percentiles.contains(part), "{percentiles}");
    }
}

#[test]
fn csv_has_a_line_of_names_and_one_for_each_run() {
    let (model, run) = model(|_, _| {});
    let figures = load_figures(model.run(run).unwrap()).unwrap();
    let text = csv(&[figures.clone(), figures]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    let at = lines[0].iter().position(|name| *name == "requests.ok").unwrap();
    assert_eq!((lines[1][at], lines[2][at]), ("990", "990"));
}

#[test]
fn the_interval_of_a_percentile_is_that_of_the_screen() {
    let mut histogram = Histogram::new();
    (1..=100_u64).for_each(|us| histogram.record_ns(us * 1_000));
    let latency = ClassLatency {
        class: records::metrics::ProxyLatency::Exchange.into(),
        histogram: &histogram,
        resolution: TimeResolution::FINE,
    };
    // Of 100 samples the 40th and the 61st enclose the median; the normal distribution would say the 41st and the 60th.
    let median = latency.quantile(0.5).unwrap();
    let screen = records::metrics::percentile_interval_ns(100, 0.5, |q| histogram.quantile_ns(q));
    let ms = |ns: Option<u64>| ns.unwrap() as f64 / 1e6;
    assert_eq!(median.interval_ms, Some((ms(screen.0), ms(screen.1))));
    assert_eq!(screen, (histogram.quantile_ns(0.4), histogram.quantile_ns(0.61)));
    assert_eq!(latency.quantile(0.99).unwrap().interval_ms, None, "no sample lies far enough out");
}
