//! A run that was counted from the log of another terminator.

use model::history::Update;
use records::kinds::Body;

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options};
use crate::panes::PaneId;
use crate::synthetic::SyntheticLoad;

fn observed(absent: &str) -> TestDashboard {
    observed_run(SyntheticLoad::tls(), absent)
}

fn observed_run(run: SyntheticLoad, absent: &str) -> TestDashboard {
    let mut stage = TestDashboard::empty(options());
    stage.run = run;
    let mut start = stage.run.start();
    let Body::Run(run) = &mut start.body else { panic!("a run begins with its record") };
    run.log = "haproxy".into();
    run.log_resolution_us = 1_000;
    run.absent = absent.into();
    stage.read(vec![start]);
    stage.act(Action::Update(Update::CaughtUp));
    stage.pass(5);
    stage
}

fn line<'s>(screen: &'s str, words: &str) -> &'s str {
    screen.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}:\n{screen}"))
}

#[test]
fn a_log_has_bounds_for_its_times() {
    let mut stage = observed("exchange: no log has it");
    stage.state.panes.maximised = Some(PaneId::Latency);
    let screen = stage.screen(160, 48);
    let row = line(&screen, "connect  ");
    assert!(row.contains("≤ 1"), "{row}");
    let row = line(&screen, "full handshake");
    assert!(
        !row.split("full handshake").nth(1).unwrap()[..40].contains('.'),
        "no finer than a millisecond: {row}"
    );
}

#[test]
fn what_a_log_lacks_is_blank_with_the_reason() {
    let reasons = "handshake CPU time: no log has it; where handshake time goes: no log has it; why handshakes were full: no log says why; exchange: not timed";
    let mut stage = observed(reasons);
    stage.state.panes.maximised = Some(PaneId::Handshakes);
    let screen = stage.screen(160, 48);
    assert!(line(&screen, "why full").contains("– no log says why"), "{screen}");
    assert!(line(&screen, "time ").contains("– no log has it"), "{screen}");
    stage.state.panes.maximised = Some(PaneId::Latency);
    let screen = stage.screen(160, 48);
    assert!(line(&screen, "exchange").contains("– not timed"), "{screen}");
}

#[test]
fn the_header_has_a_latency_that_the_log_has() {
    let header = |absent| {
        let mut stage = observed_run(SyntheticLoad::http(), absent);
        let tile = stage.screen(160, 48).lines().skip(2).take(2).collect::<String>();
        assert!(tile.starts_with("┌ p99 HTTP first byte ") && tile.contains("│ ≤ 1 ms "), "{tile}");
        stage.screen(60, 15).lines().nth(2).unwrap().to_owned()
    };
    assert!(header("exchange: not timed").contains("ms ttfb"), "{}", header("exchange: not timed"));
    let no_first_byte = "time to first byte: no log has it";
    assert!(header(no_first_byte).contains("ms request"), "{}", header(no_first_byte));
}

#[test]
fn each_process_of_the_terminator_has_its_cpu_time() {
    let mut run = SyntheticLoad::tls();
    run.observes = true;
    let mut stage = observed_run(run, "");
    stage.state.panes.maximised = Some(PaneId::System);
    let screen = stage.screen(160, 48);
    let row = line(&screen, "procs ");
    assert!(
        row.contains("nginx: master process 4711 0.0%  nginx: worker process 4712 43%  of one core"),
        "{row}"
    );
    assert!(row.contains("memory 12.0 MB  descriptors 64  backlog 0"), "{row}");
    let row = stage.screen(60, 24);
    let row = line(&row, "procs ");
    assert!(row.contains("worker process 4712") && !row.contains("master"), "the busiest stays: {row}");
}
