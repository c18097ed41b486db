//! Screens as they look, without colours.

mod accounts;
mod alerts;
mod certificates;
mod findings;
mod help;
mod hosts;
mod http;
mod lists;
mod messages;
mod observed;
mod plots;
mod services;
mod shown_run;
mod upstreams;
mod usage;
mod workers;

use insta::assert_snapshot;
use model::history::Update;

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options, watching};
use crate::input::intent::{Direction, Intent, QuickControl, SeekTarget, SettingEdit};
use crate::options::Options;
use crate::panes::PaneId;
use crate::synthetic::SyntheticLoad;
use crate::table::ListMove;
use crate::theme::Glyphs;
use crate::theme::scheme::ColourScheme;

/// A quarter of a minute of a run in which three seconds of records were lost.
fn with_a_gap(options: Options) -> TestDashboard {
    let mut stage = TestDashboard::live(options, 9);
    for _ in 0..3 {
        stage.run.second();
    }
    stage.pass(14);
    stage
}

#[test]
fn at_80_by_24() {
    assert_snapshot!(with_a_gap(options()).screen(80, 24));
}

#[test]
fn at_160_by_48() {
    assert_snapshot!(with_a_gap(options()).screen(160, 48));
}

#[test]
fn at_120_by_40() {
    assert_snapshot!(with_a_gap(options()).screen(120, 40));
}

#[test]
fn at_60_by_15() {
    assert_snapshot!(with_a_gap(options()).screen(60, 15));
}

#[test]
fn at_40_by_10() {
    assert_snapshot!(with_a_gap(options()).screen(40, 10));
}

/// The sizes at which every look is kept as a snapshot.
const SIZES: [(u16, u16); 4] = [(160, 48), (80, 24), (60, 15), (20, 5)];

#[test]
fn in_colour_at_each_size() {
    for (name, palette) in [("16", "16"), ("dark", "dark"), ("light", "light")] {
        let palette = ColourScheme::named(palette).unwrap().palette();
        let mut stage = with_a_gap(Options { palette, ..options() });
        // The other themes only differ in the colours themselves.
        for (columns, rows) in SIZES.into_iter().filter(|&(_, rows)| name == "16" || rows == 24) {
            assert_snapshot!(format!("in_colour_{name}_{columns}x{rows}"), stage.styled(columns, rows));
        }
    }
}

#[test]
fn without_colour_at_each_size() {
    let mut stage = with_a_gap(options());
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("without_colour_{columns}x{rows}"), stage.styled(columns, rows));
    }
}

#[test]
fn in_ascii_at_each_size() {
    let mut stage = with_a_gap(Options { glyphs: Glyphs::Ascii, ..options() });
    for (columns, rows) in SIZES {
        let screen = stage.screen(columns, rows);
        assert!(screen.is_ascii(), "{screen}");
        assert_snapshot!(format!("in_ascii_{columns}x{rows}"), screen);
    }
}

#[test]
fn colour_says_nothing_that_is_not_said_without() {
    let text = |palette: &str| {
        let palette = ColourScheme::named(palette).unwrap().palette();
        with_a_gap(Options { palette, ..options() }).screen(160, 48)
    };
    assert_eq!(text("none"), text("16"));
    // Where there are colours enough, the heat map is a background instead of shades.
    assert_ne!(text("none"), text("dark"));
    assert_eq!(without_shades(&text("none")), without_shades(&text("dark")));
}

/// The screen without the shades of the plot, which has the rows from its heading to those of the rates.
fn without_shades(screen: &str) -> String {
    let mut is_in_plot = false;
    let lines = screen.lines().map(|line| {
        is_in_plot = (is_in_plot || line.contains(" over time, ms ")) && !line.starts_with(" rate/s ");
        let is_shade = |c: char| is_in_plot && Glyphs::Unicode.shades().contains(&c);
        line.replace(is_shade, " ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn settings_are_docked_and_latencies_stay_visible() {
    let mut stage = with_a_gap(options());
    stage.want(Intent::Tune);
    stage.want(Intent::Setting(SettingEdit::Step(Direction::Up)));
    for (columns, rows) in [(160, 48), (80, 24), (40, 10)] {
        assert_snapshot!(format!("settings_{columns}x{rows}"), stage.screen(columns, rows));
    }
    for (columns, rows) in [(80, 24), (100, 30), (130, 30), (160, 48), (200, 60)] {
        let screen = stage.screen(columns, rows);
        for part in ["response CO-corrected", "over time", "load.rate", "applies: now"] {
            assert!(screen.contains(part), "{part} in {screen}");
        }
    }
}

/// A run of the host `box`, and two more of others, one of them over.
fn of_three_hosts() -> TestDashboard {
    let mut stage = TestDashboard::live(Options { watches: true, ..options() }, 9);
    for (bits, host, seconds) in [(7_u128, "edge-1.example.org", 2), (9, "edge-2.example.org", 0)] {
        let mut other = SyntheticLoad::default();
        let mut records = vec![other.start()];
        records.extend((0..seconds).flat_map(|_| other.second()));
        records.extend((seconds == 0).then(|| other.stop()));
        for record in &mut records {
            record.stamp.run = records::ids::RunId::from_bits(bits << 96);
            if let records::kinds::Body::Run(run) = &mut record.body {
                run.host = host.into();
            }
        }
        stage.read(records);
    }
    stage.pass(1);
    stage
}

#[test]
fn runs_of_many_hosts_over_the_panes() {
    let mut stage = of_three_hosts();
    stage.press('H');
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("runs_{columns}x{rows}"), stage.screen(columns, rows));
    }
}

#[test]
fn a_client_over_the_panes() {
    let mut stage = with_a_gap(options());
    stage.want(Intent::Scroll(ListMove::Down));
    stage.want(Intent::Open);
    assert_snapshot!(stage.screen(80, 24));
}

#[test]
fn an_earlier_moment() {
    let mut stage = with_a_gap(options());
    stage.screen(160, 48);
    (0..4).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(-1)))));
    assert_snapshot!(stage.screen(160, 48));
    assert_snapshot!(stage.screen(80, 24));
}

/// Half a minute in which answers became slower after a mark.
fn slower_after_a_mark() -> TestDashboard {
    let mut stage = TestDashboard::live(options(), 15);
    let mark = stage.run.mark(1);
    stage.read(vec![mark]);
    stage.run.slower_us = 400;
    stage
}

#[test]
fn what_has_changed_since_a_mark() {
    let mut stage = slower_after_a_mark();
    stage.pass(5);
    let reaches_back = stage.screen(160, 48);
    assert!(reaches_back.contains("vs mark 1") && !reaches_back.contains("% *"), "{reaches_back}");
    stage.pass(10);
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("since_a_mark_{columns}x{rows}"), stage.screen(columns, rows));
    }
    let names =
        |screen: &str| screen.lines().find(|line| line.contains("where the time goes")).unwrap().to_owned();
    let narrow = names(&stage.screen(80, 24));
    assert!(narrow.ends_with("p50     p99     max       /s         n   vs mark 1"), "{narrow}");
    // The compared window follows the displayed one.
    (0..30).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(-1)))));
    assert!(!stage.screen(160, 48).contains("% *"), "{}", stage.screen(160, 48));
}

#[test]
fn essential_figures_are_left_below_40_by_10() {
    let mut stage = with_a_gap(options());
    assert_snapshot!(format!("{}{}{}", stage.screen(79, 5), stage.screen(39, 24), stage.screen(20, 5)));
    assert_eq!(stage.screen(1, 1).trim_end(), "…");
    assert_eq!(stage.screen(0, 0), "");
}

#[test]
fn before_the_first_record_it_says_what_it_waits_for() {
    assert_snapshot!(TestDashboard::empty(options()).screen(80, 24));
}

#[test]
fn without_a_load_its_rows_are_left_out() {
    let mut stage = TestDashboard::empty(options());
    let mut records = vec![stage.run.start()];
    records.extend(stage.run.second());
    records.extend(stage.run.second());
    records.retain(|record| record.body.kind().word != "load");
    stage.read(records);
    let screen = stage.screen(100, 40);
    assert!(!screen.contains("response") && !screen.contains("loop"), "{screen}");
    stage.state.panes.maximised = Some(PaneId::Latency);
    let screen = stage.screen(100, 40);
    assert!(!screen.contains("response") && screen.contains("lifetime"), "{screen}");
}

#[test]
fn an_ended_run_shows_the_whole_of_it() {
    let mut stage = TestDashboard::live(options(), 20);
    let stop = stage.run.stop();
    stage.read(vec![stop]);
    assert_snapshot!(stage.screen(80, 24));
}

#[test]
fn cpu_of_an_ended_run_is_the_mean_of_the_whole_as_its_rates_are() {
    let mut stage = TestDashboard::live(options(), 20);
    let mut idle = None;
    for _ in 0..19 {
        let mut records = stage.run.second();
        for record in &mut records {
            let records::kinds::Body::Host(host) = &mut record.body else { continue };
            host.cpu = *idle.get_or_insert(host.cpu);
        }
        stage.wait(1);
        stage.read(records);
    }
    assert!(stage.screen(80, 24).contains(" proxy 0.0% "), "{}", stage.screen(80, 24));
    let stop = stage.run.stop();
    stage.read(vec![stop]);
    // 21 seconds with 88 % of a core in 39.
    let screen = stage.screen(80, 24);
    assert!(screen.contains(" proxy 47% ") && screen.contains("mean of the whole run"), "{screen}");
}

#[test]
fn a_frozen_view_stands_still_while_reading_goes_on() {
    let mut stage = TestDashboard::live(options(), 12);
    stage.want(Intent::Freeze);
    let before = stage.screen(80, 24);
    stage.pass(7);
    let after = stage.screen(80, 24);
    let below_title = |screen: &str| screen.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(below_title(&before), below_title(&after));
    assert!(after.contains("FROZEN at +00:12 for 00:07"), "{after}");
    stage.want(Intent::Freeze);
    assert!(stage.screen(80, 24).contains("LIVE +00:19"), "reading went on");
}

#[test]
fn a_frozen_view_keeps_its_sparklines() {
    let mut stage = TestDashboard::live(options(), 12);
    stage.want(Intent::Freeze);
    let before = stage.screen(160, 48);
    stage.pass(30);
    let clients = |screen: &str| screen.lines().skip(17).take(20).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(clients(&before), clients(&stage.screen(160, 48)));
}

#[test]
fn a_dashboard_without_control_says_so_and_sends_nothing() {
    let mut stage = TestDashboard::live(Options { watches: true, ..options() }, 3);
    for intent in [
        Intent::Adjust(QuickControl::Running, Direction::Up),
        Intent::Adjust(QuickControl::Rate, Direction::Up),
        Intent::Adjust(QuickControl::Resume, Direction::Down),
        Intent::Mark,
    ] {
        let effects = stage.want(intent);
        assert!(
            effects.iter().all(|effect| matches!(effect, crate::app::action::Effect::Draw(_))),
            "{effects:?}"
        );
    }
    assert_snapshot!(stage.screen(80, 24));
}

#[test]
fn in_ascii_nothing_else_is_drawn() {
    let mut stage = with_a_gap(Options { glyphs: Glyphs::Ascii, ..options() });
    stage.want(Intent::Scroll(ListMove::Down));
    let screen = stage.screen(160, 48);
    assert!(screen.is_ascii(), "{screen}");
    stage.want(Intent::Help);
    assert!(stage.screen(80, 24).is_ascii());
    stage.want(Intent::Help);
    assert_snapshot!(stage.screen(110, 30));
}

#[test]
fn every_small_size_is_drawn_with_and_without_help() {
    let mut stage = with_a_gap(options());
    for help in [false, true] {
        if help {
            stage.want(Intent::Help);
        }
        for columns in 0..90 {
            for rows in 0..30 {
                let screen = stage.screen(columns, rows);
                assert_eq!(screen.lines().count(), usize::from(if columns == 0 { 0 } else { rows }));
            }
        }
    }
}
