//! Every form of a report on a run whose names are hostile.

use crate::common::{CLIENT, HOST, HOSTILE, SyntheticRun, assert_harmless, at, model};
use model::runs::Model;
use recorder::publish::Publisher;
use records::delta::ProxyDelta;
use records::ids::RunId;
use records::kinds::{Level, NoticeRecord, RunRecord, Timestamps};
use records::metrics::{ProxyCounter, ProxyLatency};
use records::setting::{Applies, Setting, Value};
use records::slice::TimeRange;
use report::{Report, RunPart};

fn forms(is_anonymous: bool) -> [String; 4] {
    let (model, run) = model(&SyntheticRun::default());
    let source = format!("file:/home/{HOST}/x.journal");
    let report = Report::new(&model, model.run(run).unwrap(), &source, HOSTILE.to_owned());
    let report = if is_anonymous { report.anonymised() } else { report };
    [report.html(), report.markdown(), report.json().unwrap(), report.csv()]
}

#[test]
fn hostile_names_stay_text_in_the_page() {
    let [html, markdown, ..] = forms(false);
    assert_harmless(&html);
    assert!(!markdown.contains('<') && markdown.contains("\\|\\*\\[a\\]"), "{markdown}");
    for row in markdown.lines().filter(|line| line.starts_with("| ")) {
        assert!(row.ends_with('|'), "{row}");
    }
}

#[test]
fn the_figures_stand_in_every_form() {
    let [html, markdown, json, csv] = forms(false);
    assert!(
        html.contains("0 of 1,000 handshakes resumed an earlier session") && html.contains(CLIENT),
        "{html}"
    );
    for part in
        ["<figcaption>Load: response (CO-corrected)", "Proxy: handshakes", "class=\"line s1\"", "<details>"]
    {
        assert!(html.contains(part), "{part}");
    }
    let exchange = markdown.lines().find(|line| line.starts_with("| proxy exchange |")).unwrap_or_default();
    assert!(exchange.ends_with("| 0.400 | 1,000 |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["schema"].as_u64(), json["proxy_intervals"].as_array().map(Vec::len)),
        (Some(1), Some(11))
    );
    let second = &json["proxy_intervals"][1];
    assert_eq!(second["counters"]["exchanges"], 100);
    assert_eq!(second["latency_us"]["exchange"]["n"], 100);
    assert_eq!(json["summary"]["proxy"]["handshakes"]["full"], 1_000);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let names = "side,start_s,end_s,after_loss,kind,name,count,p50_us,p90_us,p99_us,max_us";
    assert_eq!(rows[0].join(","), names, "one line of names, with units");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let of = |side: &str, name: &str| -> Vec<&Vec<&str>> {
        rows.iter().filter(|row| row[0] == side && row[5] == name).collect()
    };
    let exchanges = of("proxy", "exchange");
    assert_eq!(exchanges.len(), 11, "ten seconds, and the end");
    assert_eq!((exchanges[1][4], exchanges[1][6]), ("latency", "100"));
    assert!(exchanges[1][7].starts_with("400"), "{:?}", exchanges[1]);
    assert_eq!(exchanges[10][6..], ["0", "", "", "", ""], "no samples have no percentile");
    let sent = of("load", "sent");
    assert_eq!((sent.len(), sent[1][4], sent[1][6]), (11, "counter", "100"));
    assert!(of("load", "failed").is_empty(), "what was never counted is left out");
}

#[test]
fn an_anonymous_report_names_nobody() {
    for form in forms(true) {
        assert!(!form.contains(HOST) && !form.contains(CLIENT), "{form}");
    }
    let [html, ..] = forms(true);
    assert!(html.contains("client 1"));
}

/// Every form of a run with these settings, without names.
fn anonymous_forms(settings: Vec<Setting>, parts: Vec<RunPart>) -> [String; 3] {
    let run = RunId::from_bits(1);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord { settings, ..RunRecord::default() }, at(0));
    publisher.stop(RunRecord::default(), None, None, None, at(6));
    let model = crate::common::read(publisher.into_sink(), 100, |_| false);
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let report = report.with_parts(parts).anonymised();
    [report.html(), report.markdown(), report.json().unwrap()]
}

fn setting(name: &str, value: Value) -> Setting {
    let applies = Applies::Live;
    Setting { name: name.to_owned(), value, unit: String::new(), applies, range: None }
}

#[test]
fn an_anonymous_report_shows_no_text_of_a_setting_that_is_not_listed() {
    let settings = vec![
        setting("proxy.ciphers", Value::Text("TLS_AES_128_GCM_SHA256".to_owned())),
        setting("proxy.made-up-tomorrow", Value::Text(HOST.to_owned())),
        setting("proxy.workers", Value::Number(2.0)),
    ];
    for form in anonymous_forms(settings, Vec::new()) {
        assert!(!form.contains(HOST) && !form.contains("made-up-tomorrow"), "{form}");
    }
    let [html, ..] = anonymous_forms(vec![setting("proxy.workers", Value::Number(2.0))], Vec::new());
    assert!(html.contains("proxy.workers"), "{html}");
}

#[test]
fn an_anonymous_report_of_several_hosts_names_none() {
    // As runs are merged whose hosts have other values.
    let settings = vec![setting("proxy.ciphers", Value::Text(format!("A ({HOST}), B (other)")))];
    let part = RunPart {
        name: HOST.to_owned(),
        run: RunId::from_bits(1),
        account: format!("user of {HOST}"),
        from_s: 0.0,
        to_s: 6.0,
        clock_steps: None,
    };
    for form in anonymous_forms(settings, vec![part]) {
        assert!(!form.contains(HOST), "{form}");
    }
}

#[test]
fn a_loss_is_stated_and_drawn_as_a_gap() {
    let (model, run) = model(&SyntheticRun { with_loss: true, ..SyntheticRun::default() });
    let html = Report::new(&model, model.run(run).unwrap(), "file:x", String::new()).html();
    assert!(html.contains("records were lost: what happened in their intervals is missing"), "{html}");
    let whole = forms(false)[0].matches("h0").count();
    assert!(html.matches("h0").count() > whole, "lines that are broken begin anew");
}

#[test]
fn a_run_without_anything_has_a_report() {
    let run = RunId::from_bits(1);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut model = Model::new(1);
    publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    assert!(report.html().contains("still ran, or was killed"));
    assert!(report.markdown().contains("# tlsdash: run") && report.csv().lines().count() == 1);
    assert!(report.json().unwrap().contains("\"schema\": 1"));
}

#[test]
fn a_mark_has_one_number_in_the_list_the_plots_and_on_the_command_line() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher.mark("before", at(2));
    publisher.notice(
        NoticeRecord { level: Level::Warning, text: "no room".into(), ..NoticeRecord::default() },
        at(3),
    );
    publisher.mark("after", at(4));
    let mut proxy = ProxyDelta::default();
    proxy.latencies[ProxyLatency::Exchange].record_ns(1_000_000);
    for second in 1..=5 {
        publisher.interval(Some(&proxy), None, None, at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(6));
    let model = crate::common::read(publisher.into_sink(), 100, |_| false);
    let report = Report::new(&model, model.current().unwrap(), "file:x.journal", String::new());
    let html = report.html();
    // The second mark is the fourth event of the run, and `@mark:2`.
    for row in [
        ">1</td><td class=\"n\">2.0</td><td>2023-11-14T22:13:22.000Z</td><td>mark 1 before",
        ">2</td><td class=\"n\">4.0</td><td>2023-11-14T22:13:24.000Z</td><td>mark 2 after",
    ] {
        assert!(html.contains(row), "{row}: {html}");
    }
    assert!(html.contains(">e2</td>") && html.contains(">e2</text>"), "{html}");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let marks: Vec<_> =
        json["happened"].as_array().unwrap().iter().filter_map(|event| event["mark"].as_u64()).collect();
    assert_eq!(marks, [1, 2]);
}

#[test]
fn a_short_interval_at_the_end_is_not_drawn_as_a_drop() {
    let mut publisher = Publisher::new(RunId::from_bits(1), Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut proxy = ProxyDelta::default();
    proxy.counters[ProxyCounter::Exchanges] = 1_000;
    for second in 1..=5 {
        publisher.interval(Some(&proxy), None, None, at(second));
    }
    let end =
        Timestamps { monotonic_us: at(5).monotonic_us + 50_000, realtime_us: at(5).realtime_us + 50_000 };
    publisher.interval(Some(&ProxyDelta::default()), None, None, end);
    publisher.stop(RunRecord::default(), None, None, None, end);
    let model = crate::common::read(publisher.into_sink(), 100, |_| false);
    let html = Report::new(&model, model.current().unwrap(), "file:x.journal", String::new()).html();
    let (_, rates) = html.split_once("Proxy: exchanges").unwrap();
    let (rates, _) = rates.split_once("</details>").unwrap();
    assert!(!rates.contains("<td>0</td>"), "{rates}");
    assert!(rates.contains("<td>952"), "the last column is of 1.05 s: {rates}");
}

#[test]
fn a_stretch_states_what_was_asked_for_and_what_is_used() {
    let (model, run) = model(&SyntheticRun::default());
    let asked = TimeRange { from_us: at(0).realtime_us - 400_000, until_us: u64::MAX };
    let report = Report::new(&model, model.run(run).unwrap(), "file:x@-10m..", String::new());
    let markdown = report.with_range(asked).markdown();
    for row in [
        "| time range asked for | 2023-11-14T22:13:19.600Z to the end |",
        "| time range used, of whole intervals | 2023-11-14T22:13:20.000Z to 2023-11-14T22:13:31.000Z |",
    ] {
        assert!(markdown.contains(row), "{row}: {markdown}");
    }
    let late = TimeRange { from_us: u64::MAX - 1, until_us: u64::MAX - 1 };
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    assert!(report.with_range(late).markdown().contains("s after 1970"), "no date has so many digits");
}
