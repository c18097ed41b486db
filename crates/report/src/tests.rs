use super::*;
use load_run::model;

#[path = "../../telemetry/tests/load_run/mod.rs"]
mod load_run;

fn check(assertion: &str) -> Verdict {
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
        "requests.ok > 99%",
    ] {
        let expected = if good.contains("p99") { Verdict::Breached(String::new()) } else { Verdict::Holds };
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
        ("response.p50 < 5", "a time such as 5ms"),
        ("errors < 5ms", "without a unit of time"),
    ] {
        let Verdict::Breached(found) = check(bad) else { panic!("{bad} holds") };
        assert!(found.contains(reason), "{bad}: {found}");
    }
    assert_eq!(check("speed > 5"), Verdict::Unknown);
    let unknown = "speed > 5".parse::<Assertion>().unwrap().is_known_of_load().unwrap_err().to_string();
    for part in ["load.rate.achieved", "errors", "max of load.response, load.service, load.lag"] {
        assert!(unknown.contains(part), "{unknown}");
    }
    for text in ["response.p99", "response.p99 < soon", "response.p99 = 5ms"] {
        assert!(text.parse::<Assertion>().is_err(), "{text}");
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
