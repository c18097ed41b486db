//! The table of clients: order, rates, filter, details.

use super::press;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Direction, Intent};
use crate::panes::tables::clients::model::ClientRow;
use crate::state::screen::Screen;
use crate::table::{CellValue, ColumnUnit, ListMove, Row as _, Table as _};

#[test]
fn the_selection_stays_on_its_client_when_the_order_changes() {
    let mut stage = TestDashboard::live(options(), 5);
    stage.want(Intent::Scroll(ListMove::Down));
    stage.want(Intent::Scroll(ListMove::Down));
    let selected = stage.state.clients.selected.unwrap();
    for intent in [Intent::SortReverse, Intent::SortNext, Intent::SortNext] {
        stage.want(intent);
        assert_eq!(stage.state.clients.selected, Some(selected));
        let line = format!("▶{selected}");
        let screen = stage.screen(80, 24);
        assert!(screen.contains(&line), "in sight: {screen}");
    }
    stage.want(Intent::Back);
    assert_eq!(stage.state.clients.selected, None);
}

#[test]
fn every_order_sorts_by_its_column() {
    let mut stage = TestDashboard::live(options(), 5);
    let totals =
        |stage: &TestDashboard| stage.state.clients.page().iter().map(ClientRow::bytes).collect::<Vec<_>>();
    while stage.state.clients.order.column != ClientRow::column("total") {
        stage.want(Intent::SortNext);
    }
    assert!(totals(&stage).is_sorted_by(|a, b| a >= b));
    stage.want(Intent::SortReverse);
    assert!(totals(&stage).is_sorted());
}

#[test]
fn unknown_values_are_last_in_both_directions() {
    let mut stage = TestDashboard::live(options(), 5);
    let is_known = |value: CellValue<'_>| match value {
        CellValue::Text(text) => !text.is_empty(),
        CellValue::Client(_) => true,
        value => value.number().is_some(),
    };
    let mut mixed = Vec::new();
    for (at, column) in ClientRow::columns().iter().enumerate() {
        if column.unit == ColumnUnit::Graph {
            continue;
        }
        stage.state.clients.order_by(at);
        for _ in 0..2 {
            stage.screen(160, 60);
            let known: Vec<bool> =
                stage.state.clients.page().iter().map(|row| is_known(column.cell(row))).collect();
            assert!(known.is_sorted_by(|a, b| a >= b), "{}: {known:?}", column.name);
            if known.contains(&true) && known.contains(&false) {
                mixed.push(column.name);
            }
            stage.state.clients.reverse();
        }
    }
    assert!(mixed.iter().filter(|name| **name == "why").count() == 2, "{mixed:?}");
}

#[test]
fn a_clients_rate_is_what_it_did_in_the_window() {
    let mut stage = TestDashboard::live(options(), 25);
    let rows = |stage: &TestDashboard| {
        let rows = stage.state.snapshot().table.rows.all();
        rows.iter().map(|row| (row.id, row.clone())).collect::<std::collections::HashMap<_, _>>()
    };
    let before = rows(&stage);
    stage.pass(10);
    let after = rows(&stage);
    for (id, row) in &after {
        let both_ways = row.in_per_second.unwrap() + row.out_per_second.unwrap();
        let moved = (row.bytes().unwrap() - before[id].bytes().unwrap()) as f64 / 10.0;
        assert!((both_ways - moved).abs() <= moved * 1e-3, "{id}: {both_ways} and {moved}");
    }
    (0..20).for_each(|_| drop(stage.want(Intent::Window(Direction::Up))));
    for (id, row) in rows(&stage) {
        let both_ways = row.in_per_second.unwrap() + row.out_per_second.unwrap();
        let bytes = row.bytes().unwrap() as f64;
        assert!((both_ways * 35.0 - bytes).abs() <= bytes * 1e-3, "{id}");
    }
}

#[test]
fn a_filter_shows_only_the_clients_that_match() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "/2001");
    let screen = stage.screen(120, 40);
    assert!(screen.contains("filter clients: 2001") && screen.contains("─ filter: 2001 1/20"), "{screen}");
    press(&mut stage, "\n");
    assert!(
        stage.screen(120, 40).contains("2001:db8:17:4::a0c:1")
            && !stage.screen(120, 40).contains("10.0.0.11")
    );
    press(&mut stage, "/x\n");
    assert!(stage.screen(120, 40).contains("none matches 2001x"));
    press(&mut stage, "/\x1b");
    assert!(stage.screen(120, 40).contains("10.0.0.11"));
}

#[test]
fn all_about_a_client_can_be_seen() {
    let mut stage = TestDashboard::live(options(), 6);
    press(&mut stage, "/0.23\nj\n");
    let screen = stage.screen(120, 40);
    assert!(screen.contains("client 10.0.0.23"), "{screen}");
    for text in ["handshakes  full", "received fatal alert: UnknownCA", "connections"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    stage.want(Intent::Back);
    assert_eq!(stage.state.screen, Screen::Dashboard);
}
