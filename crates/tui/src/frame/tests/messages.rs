//! Messages of the screen about a run, its records and its clients.

use std::sync::Arc;

use model::history::Batch;
use model::runs::Level;
use records::codec::{Origin, Writer};
use records::kinds::{Body, Estimate, ExperimentRecord, HealthRecord};
use records::metrics::{LoadCounter, LoadLatency, ProxyCounter};
use records::setting::Value;
use records::text::clean;
use records::values::Latency;

use super::*;

/// The screen while this pane has all of it.
fn maximised(stage: &mut TestDashboard, id: PaneId) -> String {
    stage.state.panes.maximised = Some(id);
    let screen = stage.screen(160, 48);
    stage.state.panes.maximised = None;
    screen
}

/// Records of so many seconds, each changed before it is read.
fn changed(seconds: usize, change: impl Fn(&mut Body)) -> TestDashboard {
    let mut stage = TestDashboard::empty(options());
    let mut records = vec![stage.run.start()];
    records.extend((0..seconds).flat_map(|_| stage.run.second()));
    for record in &mut records {
        change(&mut record.body);
    }
    stage.read(records);
    stage
}

#[test]
fn a_proxy_short_of_cpu_is_said() {
    let mut stage = changed(4, |body| {
        if let Body::Run(run) = body {
            run.workers = 1;
        }
    });
    let screen = stage.screen(80, 24);
    assert!(screen.contains("! proxy at 88% of its cores: latency now includes waiting for CPU"), "{screen}");
}

#[test]
fn offered_and_achieved_load_that_part_are_said() {
    let late = |share: u64| {
        changed(4, move |body| {
            if let Body::Load(load) = body {
                let sent = &mut load.counters[LoadCounter::Sent];
                *sent = *sent * share / 100;
            }
        })
    };
    let screen = late(90).screen(80, 24);
    assert!(screen.contains("! only 90.0% of the requests due were sent"), "{screen}");
    let screen = late(96).screen(80, 24);
    assert!(!screen.contains("requests due"), "{screen}");
}

#[test]
fn a_load_that_was_stopped_is_not_said_to_fall_behind() {
    let screen = changed(4, |body| {
        if let Body::Load(load) = body {
            load.running = false;
            load.counters[LoadCounter::Sent] /= 2;
            load.counters[LoadCounter::NeverSent] = 1234;
        }
    })
    .screen(80, 24);
    assert!(!screen.contains("requests due") && screen.contains("never sent 1,234"), "{screen}");
}

#[test]
fn an_unreachable_upstream_is_a_warning_for_ten_seconds() {
    let mut failed = 0;
    let failing = std::cell::RefCell::new(&mut failed);
    let mut stage = changed(3, |body| {
        if let Body::Proxy(proxy) = body {
            **failing.borrow_mut() += 20;
            proxy.counters[ProxyCounter::UpstreamConnectsFailed] = **failing.borrow();
        }
    });
    let screen = stage.screen(80, 24);
    assert!(screen.contains("! upstream out of reach: 60 connections turned away in the las"), "{screen}");
    let screen = stage.screen(160, 48);
    assert!(
        screen.contains("! upstream out of reach: 60 connections turned away in the last 10 s"),
        "{screen}"
    );
    let screen = maximised(&mut stage, PaneId::System);
    assert!(screen.contains("upstream errors 60"), "{screen}");
    for _ in 0..11 {
        let mut records = stage.run.second();
        for record in &mut records {
            if let Body::Proxy(proxy) = &mut record.body {
                proxy.counters[ProxyCounter::UpstreamConnectsFailed] = 60;
            }
        }
        stage.read(records);
    }
    assert!(!stage.screen(160, 48).contains("out of reach"), "{}", stage.screen(160, 48));
    let screen = maximised(&mut stage, PaneId::System);
    assert!(screen.contains("upstream errors 0 (60 total)"), "{screen}");
}

#[test]
fn a_load_alone_has_no_clients_and_no_hint_to_sort_them() {
    let mut stage = TestDashboard::empty(options());
    let mut records = vec![stage.run.start()];
    records.extend(stage.run.second());
    records.retain(|record| !matches!(record.body.kind().word, "proxy" | "client"));
    stage.read(records);
    for (columns, rows) in [(80, 24), (160, 48)] {
        let screen = stage.screen(columns, rows);
        assert!(!screen.contains("clients") && !screen.contains("s sort"), "{screen}");
        let of_load = if columns < 100 { "t tune" } else { "l load" };
        assert!(screen.contains(of_load), "{screen}");
    }
}

#[test]
fn failed_handshakes_list_the_causes_that_fit() {
    let mut stage = changed(2, |body| {
        if let Body::Proxy(proxy) = body {
            for cause in [ProxyCounter::FailedNotTls, ProxyCounter::FailedTimeout] {
                proxy.counters[cause] = 5;
            }
        }
    });
    // The tile has those that fit, and the pane with the focus has a line.
    assert!(stage.screen(80, 24).contains("  timeout 5  "), "{}", stage.screen(80, 24));
    assert!(stage.screen(160, 48).contains("│ timeout 5  not TLS 5"), "{}", stage.screen(160, 48));
    stage.state.panes.focus = Some(PaneId::Handshakes);
    assert!(stage.screen(80, 24).contains("timeout 5, n…"), "{}", stage.screen(80, 24));
    assert!(stage.screen(100, 24).contains("timeout 5, not TLS 5, alert 1 ─"), "{}", stage.screen(100, 24));
}

#[test]
fn refused_records_are_the_first_warning() {
    let mut stage = with_a_gap(options());
    let mut records = stage.run.second();
    let health =
        HealthRecord { refused_total: 3, error: "no space left on device".into(), ..HealthRecord::default() };
    records[0].body = Body::Health(health);
    stage.read(records);
    let screen = stage.screen(80, 24);
    assert!(
        screen.contains("! the journal refused 3 records: no space left on device (+1 more)"),
        "{screen}"
    );
    let screen = maximised(&mut stage, PaneId::System);
    assert!(screen.contains("refused 3"), "{screen}");
}

fn another_process() -> Arc<Writer> {
    let origin = Origin { pid: Some(1), ..Origin::default() };
    Writer { origin, ..Writer::default() }.into()
}

#[test]
fn the_data_line_shows_lost_and_refused_records() {
    let mut stage = TestDashboard::live(options(), 2);
    let quiet = maximised(&mut stage, PaneId::System);
    let words = ["dropped 2", "suppressed 41", "foreign 1", "merged 5", "unrecorded 9"];
    assert!(words.iter().all(|word| !quiet.contains(word.split(' ').next().unwrap())), "{quiet}");
    let mut records = stage.run.second();
    for record in &mut records {
        if let Body::Proxy(proxy) = &mut record.body {
            proxy.counters[ProxyCounter::EventsUnrecorded] = 4;
        }
    }
    records[0].body = Body::Health(HealthRecord {
        dropped_total: 2,
        suppressed_total: 41,
        merged_total: 5,
        over_budget_total: 5,
        ..HealthRecord::default()
    });
    stage.read(records);
    stage.wait(3);
    let foreign = stage.run.second();
    let writer = another_process();
    let batch = Batch { writer, records: foreign[..1].to_vec(), ..Batch::default() };
    stage.act(Action::Update(Update::Batch(batch)));
    let screen = maximised(&mut stage, PaneId::System);
    for word in words {
        assert!(screen.contains(word), "{word} in {screen}");
    }
    let screen = stage.screen(160, 48);
    assert!(screen.contains("! journald dropped 41 messages of this service: its rate limit"), "{screen}");
    assert!(screen.contains("another process writes records under the id of this run"), "{screen}");
}

#[test]
fn records_of_another_process_do_not_make_a_silent_run_live() {
    let mut stage = TestDashboard::live(options(), 5);
    stage.wait(20);
    let records = stage.run.second();
    let writer = another_process();
    let read_mono_us = Some(records[0].stamp.mono_us);
    stage.act(Action::Update(Update::Batch(Batch { writer, records, read_mono_us, ..Batch::default() })));
    stage.wait(0);
    assert!(stage.screen(80, 24).contains("NO DATA for 00:20"), "{}", stage.screen(80, 24));
}

#[test]
fn a_gap_is_news_for_a_minute_and_then_a_count() {
    let mut stage = with_a_gap(options());
    assert!(stage.screen(80, 24).contains("! 66 records lost in 1 gap:"));
    stage.pass(60);
    let screen = stage.screen(80, 24);
    assert!(!screen.contains("records lost") && screen.contains("lost 66"), "{screen}");
}

#[test]
fn time_in_which_the_process_did_not_run_is_blank_and_said() {
    let mut stage = TestDashboard::live(options(), 30);
    stage.run.stand_still(12);
    stage.wait(12);
    stage.pass(4);
    let screen = stage.screen(80, 24);
    let said = "! tlsdash was stopped or starved in 1 gap: rates over a gap are averages";
    assert!(screen.contains(said), "{screen}");
    // 12 s of 46 s, of which each has a cell.
    let blank = |line: &&str| line.contains(&format!("▓{}▓", " ".repeat(12)));
    assert!(screen.lines().any(|line| blank(&line)), "{screen}");
    let screen = maximised(&mut stage, PaneId::System);
    assert!(screen.contains("gaps 1"), "{screen}");
}

#[test]
fn a_repeated_line_is_counted_alike_however_many_lines_are_shown() {
    let mut stage = TestDashboard::live(options(), 12);
    let record = stage.run.mark(1);
    stage.read(vec![record]);
    stage.pass(12);
    let said = "×6 in 20 s";
    for (columns, rows) in [(160, 48), (80, 24), (40, 10)] {
        assert!(stage.screen(columns, rows).contains(said), "{}", stage.screen(columns, rows));
    }
}

#[test]
fn a_line_repeated_beyond_what_is_kept_is_counted_as_at_least() {
    let mut stage = TestDashboard::live(options(), 900);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("×100+ in 6.6 min"), "{screen}");
}

#[test]
fn hostile_text_and_wide_characters_stay_within_their_cells() {
    let mut stage = TestDashboard::live(options(), 2);
    let text = clean::text(
        "日本語\u{1b}[2J日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    );
    stage.act(Action::Update(Update::Notice(Level::Warning, text)));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("\\u{1b}[2J") && !screen.contains('\u{1b}'), "{screen}");
    assert!(screen.lines().count() == 24, "{screen}");
}

#[test]
fn a_closed_loop_shows_only_uncorrected_service_times() {
    let mut stage = changed(3, |body| {
        if let Body::Load(load) = body {
            load.rate = 0.0;
            for class in [LoadLatency::Response, LoadLatency::Lag] {
                load.latencies[class] = Latency::default();
            }
        }
    });
    let screen = stage.screen(80, 24);
    assert!(screen.contains("CLOSED loop") && screen.contains("service uncorrected"), "{screen}");
    assert!(
        !screen.contains("response") && !screen.contains("send lag") && !screen.contains("offered"),
        "{screen}"
    );
}

#[test]
fn the_experiment_verdict_fits_every_screen() {
    use records::kinds::{ExperimentOutcome, ExperimentStep, Stage as Part};
    let mut stage = TestDashboard::live(options(), 5);
    stage.want(Intent::Experiments);
    assert!(stage.screen(80, 24).contains("no experiment yet; e begins one"));
    let mut record = stage.run.mark(1);
    record.body = Body::Experiment(Box::new(ExperimentRecord {
        number: 1,
        step: ExperimentStep::Verdict,
        stage: Part::Comparison,
        setting: "proxy.workers".into(),
        a: "1".into(),
        b: "2".into(),
        pair: 6,
        pairs: 6,
        metric: "handshake_full.p99".into(),
        is_primary: true,
        estimate: Some(Estimate {
            a: 123_456.789,
            b: 119_000.5,
            effect: -3.6,
            low: -44.9,
            high: 8.0,
            confidence_percent: 95.0,
            p_value: 0.406,
            ..Estimate::default()
        }),
        outcome: ExperimentOutcome::Inconclusive,
        reason: "generator-bound: it took on 3.7 % of the requests more than 1 ms late under at least one of the two \
                 values, so that latencies of the load tell of itself"
            .into(),
        ..ExperimentRecord::default()
    }));
    stage.read(vec![record]);
    assert_snapshot!(stage.screen(80, 24));
    assert_snapshot!(stage.screen(160, 48));
}

#[test]
fn failures_before_the_window_are_not_counted_in_it() {
    let mut stage = TestDashboard::live(options(), 10);
    let failed = |screen: &str| {
        let figures = screen.lines().skip_while(|line| !line.contains(" failed, 10 s ")).skip(1);
        let tile = figures.take(3).filter_map(|line| line.split('│').nth(5).map(str::trim));
        tile.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let screen = stage.screen(120, 40);
    assert_eq!(failed(&screen), ["3", "alert", ""], "{screen}");
    stage.run.is_failing = false;
    stage.pass(60);
    let screen = stage.screen(160, 48);
    assert_eq!(failed(&screen), ["0", "3", ""], "{screen}");
    assert!(screen.contains(" failed   0 (3 total)"), "{screen}");
    let errors =
        |stage: &TestDashboard| stage.state.clients.page().iter().filter_map(|row| row.errors).sum::<u64>();
    assert_eq!(errors(&stage), 0, "{screen}");
    stage.want(Intent::Freeze);
    let looks = stage.styled(160, 48);
    assert!(!looks.contains("+b\n") || failed(&screen)[0] == "0", "{looks}");
}

#[test]
fn a_change_that_an_experiment_made_is_not_compared_with() {
    use Value;
    use records::kinds::{Arm, Body, ExperimentRecord, ExperimentStep, Stage as Part};
    let mut stage = TestDashboard::live(options(), 12);
    let step = |stage: &mut TestDashboard, step, arm| {
        let mut record = stage.run.mark(1);
        let setting = "load.rate".to_owned();
        record.body = Body::Experiment(Box::new(ExperimentRecord {
            number: 1,
            step,
            stage: Part::Comparison,
            arm,
            setting,
            ..ExperimentRecord::default()
        }));
        stage.read(vec![record]);
    };
    step(&mut stage, ExperimentStep::Begin, Arm::A);
    for (rate, arm) in [(6000.0, Arm::B), (5000.0, Arm::A), (6000.0, Arm::B)] {
        let record = stage.run.set("load.rate", Value::Number(rate)).unwrap();
        stage.read(vec![record]);
        step(&mut stage, ExperimentStep::Switch, arm);
        stage.pass(12);
    }
    step(&mut stage, ExperimentStep::Verdict, Arm::B);
    let record = stage.run.set("load.rate", Value::Number(5000.0)).unwrap();
    stage.read(vec![record]);
    stage.pass(30);
    let screen = stage.screen(160, 48);
    assert!(!screen.contains("vs change"), "{screen}");
    let record = stage.run.set("load.rate", Value::Number(5500.0)).unwrap();
    stage.read(vec![record]);
    stage.pass(20);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("vs change"), "a person made this one: {screen}");
}
