//! Plots over time.

use records::setting::Value;

use crate::input::intent::{Intent, SeekTarget};
use crate::testing::{TestDashboard, options};

/// Returns the last row of the screen that contains a text.
fn row(screen: &str, text: &str) -> String {
    screen.lines().rfind(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}")).to_owned()
}

#[test]
fn plots_fill_their_width_from_the_first_seconds() {
    for seconds in [1, 3, 40, 151, 152, 200] {
        let screen = TestDashboard::live(options(), seconds).screen(160, 48);
        for sign in ["▓▓", "⣀", "┴"] {
            let row = row(&screen, sign);
            assert_eq!(row.chars().count(), 160, "{seconds} s: {screen}");
            let first = row.chars().position(|c| sign.contains(c));
            assert_eq!(first, Some(8), "{seconds} s: {screen}");
        }
    }
}

#[test]
fn zooming_by_hand_is_said_until_the_run_fits_again() {
    let mut stage = TestDashboard::live(options(), 20);
    assert!(row(&stage.screen(160, 48), "over time").ends_with(" 20 s, 1 s a column"));
    stage.press('o');
    assert!(row(&stage.screen(160, 48), "over time").ends_with(" 20 s, 2 s a column (zoomed)"));
    stage.press('O');
    assert!(row(&stage.screen(160, 48), "over time").ends_with(" 20 s, 1 s a column"));
}

#[test]
fn changes_near_to_each_other_are_counted_and_listed_at_the_cursor() {
    let mut stage = TestDashboard::live(options(), 20);
    for rate in [5500.0, 6000.0, 6500.0] {
        let change = stage.run.set("load.rate", Value::Number(rate)).unwrap();
        stage.read(vec![change]);
    }
    stage.pass(20);
    let axis = row(&stage.screen(80, 24), "time ");
    assert!(axis.contains("▲ 3 changes") && axis.contains("┴+00:30"), "{axis}");
    stage.want(Intent::Seek(SeekTarget::PreviousMark));
    let axis = row(&stage.screen(160, 48), "▲rate 5000");
    assert!(axis.contains("▲rate 5000>5500, ▲rate 5500>6000, ▲rate 6000>6500"), "{axis}");
}

#[test]
fn a_change_at_the_right_edge_is_named_before_its_sign() {
    let mut stage = TestDashboard::live(options(), 20);
    let change = stage.run.set("load.rate", Value::Number(5500.0)).unwrap();
    stage.read(vec![change]);
    stage.pass(1);
    let axis = row(&stage.screen(80, 24), "time ");
    assert!(axis.contains("rate 5000>5500 ▲"), "{axis}");
}

#[test]
fn p99_before_a_mark_is_a_line_of_its_own() {
    let mut stage = TestDashboard::live(options(), 15);
    let mark = stage.run.mark(1);
    stage.read(vec![mark]);
    stage.pass(12);
    let legend = row(&stage.screen(160, 48), "percentiles");
    assert!(legend.ends_with("─p50 1.67  ┄p99 before 5.32"), "{legend}");
}

#[test]
fn a_column_is_not_blank_because_another_record_came_before_its_interval() {
    let mut stage = TestDashboard::live(options(), 20);
    let mut change = stage.run.set("load.rate", Value::Number(5500.0)).unwrap();
    change.stamp.mono_us += 1_050_000;
    stage.read(vec![change]);
    // Nothing is missing yet.
    assert!(row(&stage.screen(160, 48), "▓▓").ends_with('▓'));
    stage.pass(4);
    let heat = row(&stage.screen(160, 48), "▓▓");
    assert!(heat.ends_with('▓') && !heat.contains("▓ "), "{heat}");
}
