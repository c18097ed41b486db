//! Plots over time.

use records::kinds::{Body, SettingRecord};
use records::setting::{Applies, Setting, Value};

use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, SeekTarget};

/// Returns the last row of the screen that contains a text.
fn row(screen: &str, text: &str) -> String {
    screen.lines().rfind(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}")).to_owned()
}

#[test]
fn the_newest_column_is_near_the_right_and_those_of_a_young_run_are_wide() {
    // Seconds, and the cells of each; 138 cells are between the scale and the values, of which up to seven columns are
    // blank.
    for (seconds, cells) in [(1, 4), (3, 4), (26, 4), (27, 2), (61, 2), (62, 1), (138, 1), (139, 1), (200, 1)]
    {
        let screen = TestDashboard::live(options(), seconds).screen(160, 48);
        for (row_of, sign) in [("      1 ", '▓'), (" rate/s ", '█'), (" p99 5.32", '⣀')] {
            let found = screen.lines().find(|line| line.contains(row_of) && !line.starts_with('│'));
            let row: Vec<char> = found.unwrap_or_default().chars().take(147).collect();
            let place = |at: Option<usize>| at.unwrap_or_else(|| panic!("{seconds} s: {screen}"));
            let last = place(row.iter().rposition(|c| *c == sign));
            let first = place(row.iter().position(|c| *c == sign));
            let blank = 145 - last;
            assert!(blank < 8 * cells && blank % cells == 0, "{seconds} s: {screen}");
            assert_eq!(last + 1 - first, (seconds * cells).min(138 - blank), "{seconds} s: {screen}");
        }
    }
}

#[test]
fn columns_move_eight_at_once() {
    let mut stage = TestDashboard::live(options(), 200);
    let mut ends = Vec::new();
    for _ in 0..17 {
        stage.pass(1);
        let rates = row(&stage.screen(160, 48), " rate/s ");
        ends.push(rates.chars().take(146).collect::<Vec<_>>().iter().rposition(|c| *c == '█').unwrap());
    }
    let moves = ends.windows(2).map(|ends| ends[1] as i64 - ends[0] as i64);
    let (back, on): (Vec<_>, Vec<_>) = moves.partition(|cells| *cells < 0);
    assert!(back == [-7, -7] && on.iter().all(|cells| *cells == 1), "{ends:?}");
}

#[test]
fn the_window_of_a_young_run_is_the_run() {
    for (seconds, words) in [(5, "5 s"), (15, "10 s")] {
        let axis = row(&TestDashboard::live(options(), seconds).screen(160, 48), "   time ");
        let bracket = axis.split('└').nth(1).unwrap();
        assert_eq!(bracket.trim_matches(['─', '┘']), words, "{axis}");
    }
}

#[test]
fn the_values_beside_the_plot_are_in_their_order() {
    let mut stage = TestDashboard::live(options(), 30);
    for rows in 20..48 {
        let screen = stage.screen(100, rows);
        let values: Vec<f64> = ["max", "p99", "p50"]
            .into_iter()
            .flat_map(|name| {
                screen.lines().enumerate().filter_map(move |(y, line)| {
                    let (_, value) = line.rsplit_once(&format!(" {name} "))?;
                    Some((y, value.parse().ok()?))
                })
            })
            .collect::<std::collections::BTreeMap<usize, f64>>()
            .into_values()
            .collect();
        assert!(values.is_sorted_by(|above, below| above >= below), "{values:?} in {screen}");
        assert!(!values.is_empty(), "{screen}");
    }
}

#[test]
fn a_run_that_is_over_is_shown_from_its_beginning_to_its_end() {
    for seconds in [3, 20, 138, 200] {
        let mut stage = TestDashboard::live(options(), seconds);
        let stop = stage.run.stop();
        stage.read(vec![stop]);
        let screen = stage.screen(160, 48);
        let axis: Vec<char> = row(&screen, "   time ").chars().collect();
        let start = 8;
        assert_eq!(axis[start..start + 7].iter().collect::<String>(), "┴+00:00", "{seconds} s: {screen}");
        assert_eq!(axis.len(), 146, "{seconds} s: {screen}");
    }
}

#[test]
fn the_length_of_a_column_is_said_while_zooming_until_the_run_fits() {
    let mut stage = TestDashboard::live(options(), 200);
    assert!(row(&stage.screen(160, 48), "over time").ends_with(" 2.3 min, 1 s a column"));
    for (key, said) in [
        ('o', "4.6 min, 2 s a column"),
        ('o', "5.8 min, 5 s a column"),
        ('i', "4.6 min, 2 s a column"),
        ('i', "2.3 min, 1 s a column"),
        ('O', "3.3 min, 2 s a column"),
    ] {
        stage.press(key);
        let heading = row(&stage.screen(160, 48), "over time");
        assert!(heading.ends_with(&format!(" {said}")), "{said}: {heading}");
    }
}

#[test]
fn the_heading_says_how_much_time_the_plot_of_a_young_run_has_room_for() {
    for (seconds, said) in [(14, "34 s, 1 s a column"), (40, "1.1 min, 1 s a column")] {
        let heading = row(&TestDashboard::live(options(), seconds).screen(160, 48), "over time");
        assert!(heading.ends_with(&format!(" {said}")), "{said}: {heading}");
    }
}

#[test]
fn the_courses_in_tiles_end_at_the_shown_moment() {
    let mut stage = TestDashboard::live(options(), 20);
    let bars = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        let figures = screen.lines().nth(3).unwrap();
        figures.split("│ │").next().unwrap().chars().filter(|c| ('▁'..='█').contains(c)).count()
    };
    stage.screen(160, 48);
    assert_eq!(bars(&mut stage), 14);
    for (moment, shown) in [("+00:03", 3), ("+00:00", 0), ("+00:18", 14)] {
        stage.press('@');
        moment.chars().chain(['\n']).for_each(|key| drop(stage.press(key)));
        assert_eq!(bars(&mut stage), shown, "{moment}");
    }
}

#[test]
fn a_limit_below_the_scale_is_named_at_the_bottom_and_not_drawn() {
    let mut stage = TestDashboard::live(options(), 20);
    for (condition, is_drawn) in
        [("response.p99 > 3ms for 5s", true), ("response.p99 > 0.01ms for 5s", false)]
    {
        let (name, value) = ("alert.1".to_owned(), Value::Text(condition.to_owned()));
        let after =
            Setting { name: name.clone(), value, unit: String::new(), applies: Applies::Live, range: None };
        let change = SettingRecord { name, after: Some(after), ..SettingRecord::default() };
        let record = stage.run.event(Body::Setting(change));
        stage.read(vec![record]);
        stage.pass(1);
        let screen = stage.screen(160, 48);
        assert_eq!(screen.contains("╌╌") || screen.contains("╌ ╌"), is_drawn, "{screen}");
        assert_eq!(screen.contains("↓limit 0.01"), !is_drawn, "{screen}");
    }
}

#[test]
fn changes_near_to_each_other_are_counted_and_listed_at_the_cursor() {
    let mut stage = TestDashboard::live(options(), 20);
    for rate in [5500.0, 6000.0, 6500.0] {
        let change = stage.run.set("load.rate", Value::Number(rate)).unwrap();
        stage.read(vec![change]);
    }
    stage.pass(20);
    let axis = row(&stage.screen(80, 24), "   time ");
    assert!(axis.contains("▲ 3 changes") && axis.contains("┴+00:00"), "{axis}");
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
    let axis = row(&stage.screen(80, 24), "   time ");
    assert!(axis.contains("rate 5000>5500 ▲"), "{axis}");
}

#[test]
fn p99_before_a_mark_is_a_line_of_its_own() {
    let mut stage = TestDashboard::live(options(), 15);
    let mark = stage.run.mark(1);
    stage.read(vec![mark]);
    // The line of p99 leaves that of before.
    stage.run.slower_us = 3_000;
    stage.pass(12);
    let screen = stage.screen(160, 48);
    let before = row(&screen, " was 5.32");
    let is_dotted = |c: char| "⡀⠄⠂⠁".contains(c);
    assert!(before.matches(is_dotted).count() >= 10, "{screen}");
    assert!(row(&screen, " p99 8.").contains("⠉⠉") || row(&screen, " p99 8.").contains("⣀⣀"), "{screen}");
}

#[test]
fn rates_beside_lost_records_are_those_of_known_time() {
    let mut stage = super::with_a_gap(options());
    stage.screen(160, 48);
    // The first interval after the gap shares a column of two seconds with the next one.
    stage.press('o');
    let screen = stage.screen(160, 48);
    let rates = row(&screen, " rate/s ");
    let levels: String = rates.chars().filter(|c| ('▁'..='█').contains(c)).collect();
    assert!(levels.chars().all(|level| level == '█') && levels.len() > 20, "{screen}");
    let failed = screen.lines().find(|line| line.starts_with(" failed ")).unwrap();
    // One in the only known second before the gap, and one in two seconds each time after it.
    let after = failed.split("████    ").nth(1).unwrap();
    assert!(after.contains('▄') && !after.contains('█'), "{screen}");
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
