//! Alerts that fired stand in every form of a report.

use crate::common::at;
use model::figures::AlertFigure as _;
use model::runs::Model;
use recorder::publish::Publisher;
use records::ids::RunId;
use records::kinds::{AlertRecord, AlertState, Record, RunRecord};
use report::Report;

fn alert(number: u64, state: AlertState, worst: f64, firing_us: u64) -> AlertRecord {
    let alert = AlertRecord {
        number,
        state,
        condition: format!("response.p99 > {number}ms <b>"),
        figure: "load.response.p99".to_owned(),
        operator: ">".to_owned(),
        limit: number as f64 * 1e3,
        value: 7_210.0,
        worst,
        firing_us,
        ..AlertRecord::default()
    };
    alert.with_sentence()
}

fn model() -> (Model, RunId) {
    let run = RunId::from_bits(7);
    let mut publisher = Publisher::new(run, Vec::<Record>::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher.alert(alert(1, AlertState::Fired, 7_210.0, 0), at(10));
    publisher.alert(alert(2, AlertState::Fired, 7_210.0, 0), at(20));
    publisher.alert(alert(1, AlertState::Resolved, 9_204.4, 25_000_000), at(35));
    publisher.alert(alert(3, AlertState::Fired, 7_210.0, 0), at(40));
    publisher.alert(alert(3, AlertState::Withdrawn, 8_000.0, 5_000_000), at(45));
    publisher.stop(RunRecord::default(), None, None, None, at(60));
    let mut model = Model::default();
    for record in publisher.into_sink() {
        model.apply(record, None);
    }
    (model, run)
}

#[test]
fn alerts_are_listed_with_their_times_and_worst_values() {
    let (model, run) = model();
    let report = Report::new(&model, model.run(run).unwrap(), "x", "tlsdash report".to_owned());
    let (page, tables) = (report.html(), report.markdown());
    for row in [
        "| response.p99 > 1ms &lt;b> | 10.0 | 35.0 | 25.0 | 9.2 ms |",
        "| response.p99 > 2ms &lt;b> | 20.0 | still firing at the end | 40.0 | 7.21 ms when it fired |",
        "| response.p99 > 3ms &lt;b> | 40.0 | 45.0, changed or switched off | 5.0 | 8 ms |",
    ] {
        assert!(tables.contains(row), "{tables}");
    }
    assert!(page.contains("<h2>Alerts</h2>") && page.contains("response.p99 &gt; 1ms &lt;b&gt;"), "{page}");
    assert!(page.contains("alert: response.p99 is 7.21 ms &gt; 1 ms"), "an event and a mark in the plots");
    let summary = serde_json::to_value(model.summary(model.run(run).unwrap(), None)).unwrap();
    let alerts = summary["alerts"].as_array().unwrap();
    assert_eq!(alerts.len(), 3);
    assert_eq!(
        (&alerts[0]["fired_s"], &alerts[0]["ended_s"], &alerts[0]["worst"]),
        (&10.0.into(), &35.0.into(), &9_204.4.into())
    );
    assert_eq!((&alerts[1]["ended_s"], &alerts[1]["state"]), (&serde_json::Value::Null, &"fired".into()));
}

#[test]
fn a_report_without_alerts_has_no_such_section_and_an_anonymous_one_no_texts() {
    let (model, run) = crate::common::model(&crate::common::SyntheticRun::default());
    let report = Report::new(&model, model.run(run).unwrap(), "x", String::new());
    assert!(!report.html().contains("<h2>Alerts") && !report.markdown().contains("## Alerts"));
    let (model, run) = self::model();
    let report = Report::new(&model, model.run(run).unwrap(), "x", String::new()).anonymised();
    assert!(report.markdown().contains("| load.response.p99 | 10.0 |") && !report.html().contains("1ms"));
}
