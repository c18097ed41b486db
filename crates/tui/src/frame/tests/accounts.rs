//! Runs of several users, as a journal of a host has them.

use std::sync::Arc;

use insta::assert_snapshot;
use model::history::Update;
use records::codec::{Origin, Writer};
use records::ids::RunId;
use records::kinds::{Body, Phase, Record};

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, PaneAction};
use crate::options::Options;
use crate::synthetic::SyntheticLoad;

fn writer(uid: u32, unit: &str) -> Arc<Writer> {
    let origin = Origin { uid: Some(uid), ..Origin::default() };
    Arc::new(Writer { origin, hostname: "box".to_owned(), unit: unit.to_owned(), ..Writer::default() })
}

fn unit() -> Arc<Writer> {
    writer(998, "tlsdash.service")
}

fn id(bits: u128) -> RunId {
    RunId::from_bits(bits << 96)
}

/// Reads records as those of a run of this writer that began so many seconds after the first.
fn read(stage: &mut TestDashboard, of: (u128, &Arc<Writer>, u64), mut records: Vec<Record>) {
    let (bits, writer, late_s) = of;
    for record in &mut records {
        record.stamp.run = id(bits);
        record.stamp.realtime_us += late_s * 1_000_000;
        if let Body::Run(run) = &mut record.body {
            run.listen = format!("10.0.0.{bits}:8443");
        }
    }
    let batch = model::history::Batch { writer: Arc::clone(writer), ..SyntheticLoad::live(records) };
    stage.act(Action::Update(Update::Batch(batch)));
}

fn begin(stage: &mut TestDashboard, bits: u128, writer: &Arc<Writer>, late_s: u64) {
    let mut other = SyntheticLoad::default();
    let records = std::iter::once(other.start()).chain(other.second()).collect();
    read(stage, (bits, writer, late_s), records);
}

/// A service is watched, and has been for a second.
fn watching_a_service() -> TestDashboard {
    let mut stage = TestDashboard::empty(Options { watches: true, title: String::new(), ..options() });
    begin(&mut stage, 1, &unit(), 0);
    stage.screen(80, 24);
    stage.act(Action::Update(Update::CaughtUp));
    stage.screen(80, 24);
    stage
}

#[test]
fn a_run_of_another_account_never_replaces_the_shown_one() {
    let mut stage = watching_a_service();
    for (bits, other) in [(2, writer(0, "session-1.scope")), (3, writer(998, "edge.service"))] {
        begin(&mut stage, bits, &other, 10 * bits as u64);
        let screen = stage.screen(160, 48);
        assert!(screen.contains("tlsdash.service  10.0.0.1:8443"), "{screen}");
    }
    let screen = stage.screen(160, 48);
    let said = "run 00000002 of uid 0 began 12:04:20Z; it is in the list of runs, and not shown";
    assert!(
        screen.contains(said) && screen.contains("run 00000003 of edge.service (uid 998) began"),
        "{screen}"
    );
    // Said once, and the service begun again is shown.
    begin(&mut stage, 4, &unit(), 50);
    stage.screen(160, 48);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("tlsdash.service  10.0.0.4:8443"), "{screen}");
    stage.want(Intent::Pane(PaneAction::MaximiseLog));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("a new run is shown: 00000004"), "{screen}");
    assert_eq!(screen.matches(said).count(), 1, "{screen}");
}

/// The end of run 1, after which a process with this run goes on.
fn end_for(stage: &mut TestDashboard, next: u128) {
    let mut stop = SyntheticLoad::default().start();
    stop.stamp.seq = 100;
    if let Body::Run(run) = &mut stop.body {
        run.phase = Phase::Stop;
        run.next_run = id(next).to_string();
    }
    read(stage, (1, &unit(), 30), vec![stop]);
}

#[test]
fn the_run_of_a_process_that_has_taken_over_is_shown_next() {
    let mut stage = watching_a_service();
    stage.state.options.run = Some(id(1));
    begin(&mut stage, 2, &unit(), 10);
    assert!(stage.screen(160, 48).contains("10.0.0.1:8443"), "the person has chosen the first");
    end_for(&mut stage, 2);
    assert!(stage.screen(160, 48).contains("10.0.0.2:8443"), "{}", stage.screen(160, 48));
    // Who looks at the first one later stays there.
    stage.want(Intent::NextRun);
    assert!(stage.screen(160, 48).contains("10.0.0.1:8443"), "{}", stage.screen(160, 48));
}

#[test]
fn a_run_that_has_taken_over_in_another_file_is_named() {
    let mut stage = watching_a_service();
    end_for(&mut stage, 2);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("run 00000002 has taken over; this source does not have it"), "{screen}");
}

#[test]
fn the_newest_run_is_shown_once_all_that_was_there_has_been_read() {
    let mut stage = TestDashboard::empty(Options { watches: true, title: String::new(), ..options() });
    begin(&mut stage, 1, &unit(), 0);
    stage.screen(80, 24);
    begin(&mut stage, 2, &writer(0, ""), 10);
    stage.act(Action::Update(Update::CaughtUp));
    assert!(stage.screen(80, 24).contains("tlsdash uid 0  10.0.0.2:8443"), "{}", stage.screen(80, 24));
}

#[test]
fn the_owner_of_a_run_is_shown_even_on_narrow_screens() {
    let mut stage = watching_a_service();
    let forged = writer(1_000, "user@1000.service");
    let mut records = vec![SyntheticLoad::default().start()];
    if let Body::Run(run) = &mut records[0].body {
        run.upstream = "unix:/run/app.sock tlsdash.service uid 0".repeat(5);
    }
    read(&mut stage, (2, &forged, 10), records);
    stage.want(Intent::NextRun);
    for (columns, rows) in [(160, 48), (80, 24), (60, 15), (50, 12)] {
        let screen = stage.screen(columns, rows);
        assert!(screen.starts_with("tlsdash uid 1000  10.0.0.2"), "{screen}");
    }
    assert!(stage.screen(40, 10).starts_with("tlsdash uid 1"), "{}", stage.screen(40, 10));
}

#[test]
fn users_and_units_stand_in_the_list_of_runs() {
    let mut stage = watching_a_service();
    begin(&mut stage, 2, &writer(0, "session-1.scope"), 10);
    begin(&mut stage, 3, &writer(1_000, "a-service-with-a-long-name.service"), 20);
    stage.press('H');
    for (columns, rows) in [(160, 48), (80, 24), (60, 15)] {
        assert_snapshot!(format!("accounts_{columns}x{rows}"), list(&stage.screen(columns, rows)));
    }
    for key in "\x1b:run uid 0".chars() {
        stage.press(key);
    }
    assert!(stage.screen(80, 24).contains("run box uid 0 00000002"), "{}", stage.screen(80, 24));
}

/// The lines of the list alone.
fn list(screen: &str) -> String {
    let lines = screen.lines().skip_while(|line| !line.contains("runs 1-3/3"));
    lines.take(6).collect::<Vec<_>>().join("\n")
}

#[test]
fn records_of_another_account_do_not_make_a_silent_run_live() {
    let mut stage = watching_a_service();
    let other = writer(0, "");
    begin(&mut stage, 2, &other, 10);
    for second in 1..=20 {
        stage.wait(1);
        let records = stage.run.second();
        read(&mut stage, (2, &other, 10), records);
        stage.screen(80, 24);
        assert!(
            second < 20 || stage.screen(80, 24).contains("NO DATA for 00:20"),
            "{}",
            stage.screen(80, 24)
        );
    }
}
