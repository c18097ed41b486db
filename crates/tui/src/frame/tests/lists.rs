//! Rows of tables, and the mouse on them.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{of_three_hosts, with_a_gap};
use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::Intent;
use crate::options::Options;
use crate::state::screen::Screen;
use crate::theme::scheme::ColourScheme;

#[test]
fn hosts_are_filtered_by_name_and_the_selected_run_is_shown() {
    let mut stage = of_three_hosts();
    for key in "H/edge\n".chars() {
        stage.press(key);
    }
    let screen = stage.screen(80, 24);
    assert!(screen.contains("runs filter: edge 2/3") && !screen.contains(" box "), "{screen}");
    stage.press('j');
    stage.press('\n');
    assert!(stage.screen(160, 48).contains("edge-2.example.org 3/3"), "{}", stage.screen(160, 48));
    // What the filter hides is not lost.
    for key in "H/\x1bg\n".chars() {
        stage.press(key);
    }
    assert!(stage.screen(160, 48).contains("box 1/3"), "{}", stage.screen(160, 48));
}

#[test]
fn a_click_does_what_a_key_does() {
    let mut stage = with_a_gap(options());
    let click = |stage: &mut TestDashboard, text: &str| {
        let screen = stage.screen(80, 24);
        let row = screen.lines().position(|line| line.contains(text)).unwrap() as u16;
        let column = screen.lines().nth(usize::from(row)).unwrap().chars().count() as u16 - 1;
        let kind = MouseEventKind::Down(MouseButton::Left);
        stage.act(Action::Point(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        stage.screen(80, 24)
    };
    assert!(click(&mut stage, " clients ").contains("full▼"), "{}", stage.screen(80, 24));
    assert!(click(&mut stage, " clients ").contains("full▲"));
    let screen = click(&mut stage, " clients ");
    assert!(screen.contains("full▼"), "{screen}");
    assert!(click(&mut stage, "10.0.0.14").contains("▶10.0.0.14"));
    assert!(click(&mut stage, "▶10.0.0.14").contains("client 10.0.0.14"));
    stage.want(Intent::Back);
    // The clients have the focus, and so the rows of the plot.
    stage.state.panes.focus = None;
    assert!(click(&mut stage, "      1 ").contains("FROZEN at +00:2"));
}

/// The dashboard after something was done with the mouse at a cell.
fn mouse(stage: &mut TestDashboard, kind: MouseEventKind, (column, row): (usize, usize)) {
    let (column, row) = (column as u16, row as u16);
    stage.act(Action::Point(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    stage.prepare();
}

/// The first cell of a text on a screen.
fn place(stage: &mut TestDashboard, text: &str) -> (usize, usize) {
    let screen = stage.screen(160, 48);
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect(text);
    (line.split(text).next().unwrap().chars().count(), row)
}

#[test]
fn what_the_mouse_points_at_does_what_a_person_expects() {
    const PRESS: MouseEventKind = MouseEventKind::Down(MouseButton::Left);
    let mut stage = with_a_gap(options());
    let at = place(&mut stage, "t tune");
    mouse(&mut stage, PRESS, at);
    assert_eq!(stage.state.screen, Screen::Tuning, "a key in the last line");
    stage.press('\x1b');
    stage.press('?');
    let at = place(&mut stage, "/ search  Up");
    mouse(&mut stage, PRESS, at);
    assert!(stage.state.prompt.is_some(), "a key below the help");
    (0..2).for_each(|_| drop(stage.press('\x1b')));
    let at = place(&mut stage, "66 records lost");
    mouse(&mut stage, PRESS, at);
    assert_eq!(stage.state.screen, Screen::Findings(0), "the worst problem");
    mouse(&mut stage, PRESS, (0, 47));
    assert_eq!(stage.state.screen, Screen::Dashboard, "beside details");
}

#[test]
fn the_wheel_zooms_the_plot_and_a_drag_zooms_to_its_range() {
    let mut stage = TestDashboard::live(options(), 200);
    let (_, row) = place(&mut stage, " p99 5.32");
    mouse(&mut stage, MouseEventKind::ScrollDown, (100, row));
    assert!(stage.screen(160, 48).contains("2 s a column"), "{}", stage.screen(160, 48));
    mouse(&mut stage, MouseEventKind::Down(MouseButton::Left), (100, row));
    mouse(&mut stage, MouseEventKind::Up(MouseButton::Left), (134, row));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("1 s a column") && screen.contains("FROZEN at +03:1"), "{screen}");
    stage.press('\x1b');
    mouse(&mut stage, MouseEventKind::Down(MouseButton::Left), (100, row));
    mouse(&mut stage, MouseEventKind::Up(MouseButton::Left), (101, row));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +02:"), "a click that slipped is a click: {screen}");
}

/// Shows the course of each client, which is an optional column.
fn with_graphs(mut stage: TestDashboard) -> TestDashboard {
    let kept = r#"{"version":1,"clients":{"columns":["failed","out","exch","p99","graph"]}}"#;
    stage.act(Action::Restore(kept.to_owned()));
    stage.prepare();
    stage
}

#[test]
fn the_selected_row_is_one_bar_beside_its_graph() {
    let palette = ColourScheme::named("16").unwrap().palette();
    let mut stage = with_graphs(TestDashboard::live(Options { palette, ..options() }, 9));
    stage.press('j');
    let screen = stage.styled(160, 48);
    let looks = screen.lines().skip_while(|line| !line.starts_with('▶')).nth(1).unwrap();
    let (graph, bar) =
        looks.trim().split(' ').collect::<Vec<_>>().split_last().map(|(a, b)| (*a, b.to_vec())).unwrap();
    assert!(!graph.ends_with('r'), "{looks}");
    assert!(bar.iter().all(|cells| cells.ends_with('r') && !cells.contains('d')), "{looks}");
}

#[test]
fn the_order_of_the_clients_is_said_where_no_column_shows_it() {
    let mut stage = TestDashboard::live(options(), 3);
    let mut headings = Vec::new();
    for _ in 0..12 {
        let screen = stage.screen(80, 24);
        headings.push(screen.lines().find(|line| line.contains("exch/s")).unwrap().to_owned());
        stage.want(Intent::SortNext);
    }
    assert!(headings.iter().all(|heading| heading.matches('▼').count() + heading.matches('▲').count() == 1));
    for order in ["by conns▼", "by client▲"] {
        assert!(headings.iter().any(|heading| heading.contains(order)), "{order}: {headings:#?}");
    }
}

#[test]
fn a_sorted_column_of_bytes_keeps_its_unit() {
    let mut stage = TestDashboard::live(options(), 3);
    for name in ["out", "in", "total"] {
        let kept = format!(
            r#"{{"version":1,"clients":{{"columns":["failed","out","in","total"],"sort":"{name}"}}}}"#
        );
        stage.act(Action::Restore(kept));
        for columns in [80, 160] {
            let screen = stage.screen(columns, 24);
            let heading = screen.lines().find(|line| line.contains(" clients ")).unwrap();
            let unit = if name == "total" { "B▼" } else { "B/s▼" };
            let sorted = heading.split("  ").map(str::trim).find(|heading| heading.contains('▼')).unwrap();
            assert!(sorted.ends_with(unit) && sorted.contains(name), "{heading}");
        }
    }
}

#[test]
fn a_short_interval_does_not_change_a_sparklines_time_scale() {
    let mut stage = with_graphs(TestDashboard::live(options(), 30));
    let sparkline = |screen: &str| {
        let row = screen.lines().find(|line| line.starts_with(" 10.0.0.11")).unwrap().to_owned();
        row.chars().filter(|c| ('▁'..='█').contains(c)).count()
    };
    assert_eq!(sparkline(&stage.screen(160, 48)), 30);
    let mut records = stage.run.second();
    for record in &mut records {
        record.stamp.mono_us -= 900_000;
        record.stamp.interval_us = 100_000;
    }
    stage.read(records);
    assert_eq!(sparkline(&stage.screen(160, 48)), 30);
}

/// The screen after some seconds without records of clients, in which the records of so many were deferred.
fn screen_without_client_records(seconds: u64, deferred: u64) -> String {
    let mut stage = with_graphs(TestDashboard::live(options(), 20));
    let mut seq = None;
    for _ in 0..seconds {
        let mut records = stage.run.second();
        let first = records[0].stamp.seq;
        records.retain(|record| record.body.kind().word != "client");
        for record in &mut records {
            // What is left out was never made, and leaves no hole in the sequence.
            record.stamp.seq = *seq.get_or_insert(first);
            seq = seq.map(|seq| seq + 1);
            if let records::kinds::Body::Proxy(proxy) = &mut record.body {
                proxy.clients_deferred = deferred;
            }
        }
        stage.read(records);
    }
    stage.screen(160, 48)
}

#[test]
fn a_client_whose_record_was_put_off_is_not_drawn_as_idle() {
    let row = |deferred| {
        let screen = screen_without_client_records(3, deferred);
        screen.lines().find(|line| line.starts_with(" 10.0.0.11")).unwrap().to_owned()
    };
    let idle = row(0);
    assert!(idle.ends_with("⡀⡀⡀"), "{idle}");
    let put_off = row(1);
    assert!(!put_off.contains('⡀') && put_off.ends_with(|c| ('▁'..='█').contains(&c)), "{put_off}");
}

#[test]
fn blank_clients_say_how_many_records_are_deferred() {
    let deferred = screen_without_client_records(15, 1_200);
    assert!(deferred.contains("–: nothing known of the window; deferred: 1,200 clients"), "{deferred}");
    assert!(!screen_without_client_records(15, 0).contains("deferred"));
}
