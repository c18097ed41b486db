//! The window, and going to other moments.

use records::kinds::Stamp;
use records::setting::Value;

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Direction, Intent, SeekTarget};
use crate::view_model::span::Span;

#[test]
fn the_window_goes_from_a_second_to_the_whole_run() {
    let mut stage = TestDashboard::live(options(), 5);
    for _ in 0..20 {
        stage.want(Intent::Window(Direction::Down));
    }
    assert_eq!(stage.state.span, Span::Last(1_000_000));
    assert!(stage.screen(80, 24).contains("latency, 1 s"));
    for _ in 0..20 {
        stage.want(Intent::Window(Direction::Up));
    }
    assert_eq!(stage.state.span, Span::WholeRun);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("latency, whole run") && screen.contains(" 24,990"), "{screen}");
}

#[test]
fn the_window_of_a_frozen_view_ends_where_it_was_frozen() {
    let mut stage = TestDashboard::live(options(), 12);
    stage.want(Intent::Freeze);
    let n = |stage: &TestDashboard| stage.state.figures().unwrap().latencies[5].n;
    stage.pass(20);
    assert_eq!(n(&stage), 10 * 4998);
    stage.want(Intent::Window(Direction::Down));
    assert_eq!(n(&stage), 5 * 4998);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("FROZEN at +00:12") && screen.contains("latency, 5 s"), "{screen}");
}

#[test]
fn an_earlier_moment_shows_its_own_figures_and_settings() {
    let mut stage = TestDashboard::live(options(), 10);
    let change = stage.run.set("load.rate", Value::Number(6100.0)).unwrap();
    stage.read(vec![change]);
    stage.pass(10);
    stage.screen(160, 48);
    stage.want(Intent::ZoomOut);
    stage.want(Intent::Seek(SeekTarget::PreviousMark));
    stage.want(Intent::Seek(SeekTarget::Columns(-1)));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:10"), "{screen}");
    assert!(
        screen.contains("OPEN loop 5,000/s") && screen.contains("load.rate 5000/s (now 6100/s)"),
        "{screen}"
    );
    assert!(screen.contains("accepted 502/s") && screen.contains("n 9,996 in 2 s"), "{screen}");
    assert_eq!(stage.state.figures().unwrap().handshakes.full, 1_000);
    stage.want(Intent::Seek(SeekTarget::NextMark));
    assert!(stage.screen(160, 48).contains("FROZEN at +00:11"), "the interval of the change");
    stage.want(Intent::Back);
    assert!(stage.screen(160, 48).contains("LIVE +00:20"));
}

#[test]
fn every_mark_is_reached_where_columns_are_long() {
    let mut stage = TestDashboard::live(options(), 20);
    for rate in [5500.0, 6000.0, 6500.0] {
        let change = stage.run.set("load.rate", Value::Number(rate)).unwrap();
        stage.read(vec![change]);
        stage.pass(2);
    }
    stage.screen(160, 48);
    (0..3).for_each(|_| drop(stage.want(Intent::ZoomOut)));
    assert!(stage.screen(160, 48).contains("10 s a column"));
    let mut times = Vec::new();
    for target in [SeekTarget::PreviousMark; 3].into_iter().chain([SeekTarget::NextMark; 2]) {
        stage.want(Intent::Seek(target));
        let screen = stage.screen(160, 48);
        times.push(screen.split("FROZEN at +00:").nth(1).unwrap()[..2].to_owned());
    }
    assert_eq!(times, ["25", "23", "21", "23", "25"]);
}

#[test]
fn the_newest_mark_is_reached_in_its_own_interval() {
    let mut stage = TestDashboard::live(options(), 20);
    let change = stage.run.set("load.rate", Value::Number(5500.0)).unwrap();
    stage.read(vec![change]);
    stage.screen(160, 48);
    stage.want(Intent::Seek(SeekTarget::PreviousMark));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:20") && !screen.contains("no earlier mark"), "{screen}");
    stage.want(Intent::Seek(SeekTarget::PreviousMark));
    assert!(stage.screen(160, 48).contains("no earlier mark"));
}

#[test]
fn seeking_stays_between_the_start_and_the_moment_of_freezing() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.screen(80, 24);
    (0..30).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(-1)))));
    assert!(stage.screen(80, 24).contains("FROZEN at +00:00"));
    stage.pass(5);
    (0..30).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(1)))));
    assert!(stage.screen(80, 24).contains("FROZEN at +00:10"));
}

#[test]
fn the_worst_latency_is_found() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.run.stall_us = 250_000;
    stage.pass(1);
    stage.run.stall_us = 0;
    stage.pass(10);
    stage.screen(160, 48);
    stage.want(Intent::Seek(SeekTarget::Worst));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:11") && screen.contains("max 266 ms"), "{screen}");
}

#[test]
fn the_column_at_the_worst_latency_holds_it_when_ticks_wander() {
    for wander_us in [3_000, -3_000] {
        let mut stage = TestDashboard::live(options(), 0);
        for second in 1..=30 {
            stage.run.stall_us = if second == 20 { 250_000 } else { 0 };
            let mut records = stage.run.second();
            for Stamp { mono_us, realtime_us, .. } in records.iter_mut().map(|record| &mut record.stamp) {
                *mono_us = mono_us.saturating_add_signed(wander_us);
                *realtime_us = realtime_us.saturating_add_signed(wander_us);
            }
            stage.wait(1);
            stage.read(records);
        }
        for zoom in 0..5 {
            stage.want(Intent::Seek(SeekTarget::Worst));
            let screen = stage.screen(160, 48);
            let seconds = if wander_us < 0 { 19 } else { 20 };
            let is_said = screen.contains(&format!("FROZEN at +00:{seconds}"));
            let names =
                |line: &str| line.contains("at the cursor  p99") || line.trim_end().ends_with(" max 266");
            let is_named = screen.lines().any(|line| line.contains("max 266") && names(line));
            assert!(is_said && is_named && screen.contains("max 266 ms"), "{wander_us} {zoom}: {screen}");
            let latencies = &stage.state.figures().unwrap().latencies;
            let response = latencies.iter().find(|row| row.class.title() == "response").unwrap();
            assert!(response.max_ns.unwrap() > 250_000_000, "{wander_us} {zoom}: {:?}", response.max_ns);
            stage.want(Intent::ZoomOut);
        }
    }
}

#[test]
fn the_window_at_the_worst_latency_holds_it() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.run.stall_us = 250_000;
    stage.pass(1);
    stage.run.stall_us = 0;
    stage.pass(60);
    stage.screen(160, 48);
    (0..4).for_each(|_| drop(stage.want(Intent::ZoomOut)));
    for window in 0..4 {
        stage.want(Intent::Seek(SeekTarget::Worst));
        let latencies = &stage.state.figures().unwrap().latencies;
        let response = latencies.iter().find(|row| row.class.title() == "response").unwrap();
        assert!(response.max_ns.unwrap() > 250_000_000, "window {window}: {:?}", response.max_ns);
        stage.want(Intent::Window(Direction::Down));
    }
}

#[test]
fn time_alone_is_drawn_only_where_it_shows() {
    let mut stage = TestDashboard::live(options(), 5);
    assert_eq!(stage.act(Action::Tick), []);
    stage.want(Intent::Freeze);
    assert_eq!(stage.act(Action::Tick), []);
    stage.wait(1);
    assert!(stage.screen(80, 24).contains("for 00:01"));
}

#[test]
fn a_live_view_stays_live_if_there_is_no_mark_to_go_to() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Seek(SeekTarget::NextMark));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("LIVE") && screen.contains("no later mark"), "{screen}");
}

#[test]
fn the_log_of_an_earlier_moment_has_no_later_notice() {
    let mut stage = TestDashboard::live(options(), 20);
    let now = stage.now();
    stage.state.notice(model::runs::Level::Notice, "a later notice", now);
    assert!(stage.screen(160, 48).contains("a later notice"));
    stage.want(Intent::Freeze);
    assert!(stage.screen(160, 48).contains("a later notice"));
    stage.want(Intent::Seek(SeekTarget::Columns(-10)));
    assert!(!stage.screen(160, 48).contains("a later notice"));
}

#[test]
fn a_run_without_requests_yet_has_the_tile_of_its_load() {
    let mut stage = TestDashboard::live(options(), 20);
    stage.want(Intent::Seek(SeekTarget::Beginning));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:00") && screen.contains(" answered, load "), "{screen}");
}
