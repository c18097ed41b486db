//! Screens of a run in HTTP mode.

use insta::assert_snapshot;
use records::kinds::Body;
use records::metrics::{HttpCounter, ProxyCounter};

use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, SeekTarget};
use crate::options::Options;
use crate::table::ListMove;
use crate::theme::Glyphs;

const SIZES: [(u16, u16); 3] = [(160, 48), (80, 24), (40, 10)];

/// A quarter of a minute of a run with two routes in which three seconds of records were lost.
fn with_a_gap() -> TestDashboard {
    let mut stage = TestDashboard::live_http(options(), 9);
    for _ in 0..3 {
        stage.run.second();
    }
    stage.pass(14);
    stage
}

#[test]
fn routes_and_statuses_at_each_size() {
    let mut stage = with_a_gap();
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("http_{columns}x{rows}"), stage.screen(columns, rows));
    }
}

#[test]
fn a_route_over_the_panes_at_each_size() {
    let mut stage = with_a_gap();
    stage.screen(160, 48);
    stage.state.panes.focus = Some(crate::panes::PaneId::Routes);
    stage.press('\n');
    stage.state.panes.focus = None;
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("route_{columns}x{rows}"), stage.screen(columns, rows));
    }
    stage.press('\x1b');
    stage.press('\x1b');
    assert!(!stage.screen(80, 24).contains("route /api"));
}

#[test]
fn slowest_and_failed_requests_at_each_size() {
    let mut stage = with_a_gap();
    stage.screen(160, 48);
    stage.press('r');
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("slowest_{columns}x{rows}"), stage.screen(columns, rows));
    }
    stage.press('r');
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("failed_{columns}x{rows}"), stage.screen(columns, rows));
    }
    stage.press('r');
    assert!(!stage.screen(160, 48).contains("failed requests"));
}

#[test]
fn everything_of_http_is_ascii_where_asked() {
    let mut stage = TestDashboard::live_http(Options { glyphs: Glyphs::Ascii, ..options() }, 12);
    for keys in ["", "\n", "\x1br", "r"] {
        keys.chars().for_each(|key| drop(stage.press(key)));
        let screen = stage.screen(160, 48);
        assert!(screen.is_ascii(), "{screen}");
    }
}

#[test]
fn empty_lists_say_why_they_are_empty() {
    let mut stage = TestDashboard::live_http(options(), 0);
    let quiet = stage.run.quiet_http_second();
    stage.wait(1);
    stage.read(quiet);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("no requests yet"), "{screen}");
    stage.press('r');
    let screen = stage.screen(160, 48);
    assert!(screen.contains("slowest requests") && screen.contains("no requests yet"), "{screen}");
}

#[test]
fn routes_are_sorted_filtered_and_their_columns_chosen() {
    let mut stage = with_a_gap();
    let heading = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        screen.lines().find(|line| line.contains(" routes")).unwrap_or_default().to_owned()
    };
    assert!(heading(&mut stage).contains("req/s▼"));
    stage.state.panes.focus = Some(crate::panes::PaneId::Routes);
    stage.press('s');
    assert!(heading(&mut stage).contains("p50 ms▼"), "{}", heading(&mut stage));
    "/5xx>0".chars().for_each(|key| drop(stage.press(key)));
    assert!(stage.screen(160, 48).contains("1 of 2 routes"), "{}", stage.screen(160, 48));
    stage.press('\n');
    assert!(heading(&mut stage).contains("filter: 5xx>0 1/2"), "{}", heading(&mut stage));
    stage.press('c');
    assert!(stage.screen(160, 48).contains("columns of the routes"));
}

#[test]
fn keys_act_on_the_clients_unless_the_routes_have_the_focus() {
    let mut stage = with_a_gap();
    stage.screen(160, 48);
    let order = |stage: &TestDashboard| (stage.state.clients.order.column, stage.state.routes.order.column);
    let (clients, routes) = order(&stage);
    stage.press('s');
    assert_eq!(order(&stage), (clients + 1, routes));
    stage.press('5');
    stage.press('s');
    assert_eq!(order(&stage), (clients + 1, routes + 1), "only the routes are shown");
    stage.press('1');
    stage.want(Intent::Scroll(ListMove::Down));
    stage.press('\n');
    assert!(stage.screen(160, 48).contains("┌ client 10.0.0.23"), "{}", stage.screen(160, 48));
}

#[test]
fn an_earlier_moment_shows_the_routes_of_that_moment() {
    let mut stage = TestDashboard::live_http(options(), 20);
    let row = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        screen.lines().find(|line| line.starts_with(" /api")).unwrap_or_default().to_owned()
    };
    let then = row(&mut stage);
    stage.pass(6);
    assert_ne!(row(&mut stage), then);
    (0..6).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::PreviousInterval))));
    assert_eq!(row(&mut stage), then);
    stage.press('r');
    let screen = stage.screen(160, 48);
    assert!(screen.contains("slowest requests") && screen.contains("at 12:04:20Z"), "{screen}");
    assert!(!screen.contains("12:04:21Z  "), "{screen}");
}

#[test]
fn gauges_at_an_earlier_moment_are_of_that_moment() {
    let mut stage = TestDashboard::live_http(options(), 3);
    let in_flight = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        screen.lines().find_map(|line| Some(line.split_once("in flight ")?.1.trim_end().to_owned()))
    };
    let then = in_flight(&mut stage).unwrap();
    assert!(then.starts_with("32  queued 1  pool 16 open, 9 idle"), "{then}");
    stage.run.http.as_mut().unwrap().more_in_flight = 100;
    stage.pass(2);
    assert!(in_flight(&mut stage).unwrap().starts_with("132 "));
    (0..2).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::PreviousInterval))));
    assert_eq!(in_flight(&mut stage), Some(then));
}

#[test]
fn the_list_of_runs_has_requests_a_second() {
    let mut stage = TestDashboard::live_http(options(), 3);
    stage.press('H');
    let screen = stage.screen(160, 48);
    let row = screen.lines().find(|line| line.contains("▶box")).unwrap_or_default();
    assert!(screen.contains("rate/s") && row.contains("4,998"), "{screen}");
}

#[test]
fn nothing_of_http_is_named_in_tcp_mode() {
    let mut stage = TestDashboard::live(options(), 9);
    let before = stage.screen(160, 48);
    stage.press('r');
    stage.press('5');
    assert_eq!(stage.screen(160, 48), before);
    stage.press('?');
    assert!(!stage.screen(160, 240).contains("HTTP"), "{}", stage.screen(160, 240));
    stage.press('\x1b');
    stage.press('x');
    assert!(!stage.screen(160, 48).contains("routes"));
}

#[test]
fn help_defines_the_figures_of_http() {
    let mut stage = TestDashboard::live_http(options(), 5);
    stage.press('?');
    let screen = stage.screen(160, 240);
    for text in ["HTTP upstream", "in flight", "pool", "the slowest requests of the window"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
}

#[test]
fn an_upstream_is_out_of_reach_if_requests_failed_not_where_another_was_reached() {
    let screen_with = |failed_requests| {
        let mut stage = TestDashboard::live_http(options(), 0);
        for _ in 0..2 {
            let mut records = stage.run.quiet_http_second();
            for record in &mut records {
                match &mut record.body {
                    Body::Proxy(proxy) => proxy.counters[ProxyCounter::UpstreamConnectsFailed] = 7,
                    Body::Http(http) => http.counters[HttpCounter::FailedConnect] = failed_requests,
                    _ => {}
                }
            }
            stage.wait(1);
            stage.read(records);
        }
        stage.screen(160, 48)
    };
    let screen = screen_with(0);
    assert!(!screen.contains("out of reach"), "{screen}");
    let screen = screen_with(3);
    assert!(screen.contains("! upstream out of reach: 3 requests failed in the last 10 s"), "{screen}");
}
