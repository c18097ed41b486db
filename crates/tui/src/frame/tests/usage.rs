//! Screens of a run whose records tell why handshakes were full, and who uses what.

use insta::assert_snapshot;

use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, SeekTarget};
use crate::options::Options;
use crate::table::ListMove;
use crate::theme::Glyphs;

const SIZES: [(u16, u16); 3] = [(160, 48), (80, 24), (40, 10)];

#[test]
fn reasons_and_waits_of_handshakes_at_each_size() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("reasons_{columns}x{rows}"), stage.screen(columns, rows));
    }
}

#[test]
fn who_uses_what_at_each_size() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    stage.press('6');
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("usage_{columns}x{rows}"), stage.screen(columns, rows));
    }
}

#[test]
fn a_key_goes_through_the_dimensions_and_a_name_opens() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    stage.screen(80, 24);
    stage.press('d');
    assert!(stage.screen(80, 24).contains("usage by version"), "{}", stage.screen(80, 24));
    for name in ["group", "cipher", "signature", "alpn", "certificate"] {
        stage.press('d');
        assert_eq!(stage.state.usage.dimension.word(), name);
    }
    assert!(stage.screen(80, 24).contains(" none"));
    stage.press('d');
    stage.want(Intent::Scroll(ListMove::Down));
    stage.want(Intent::Scroll(ListMove::Down));
    stage.press('\n');
    for (columns, rows) in SIZES {
        assert_snapshot!(format!("name_{columns}x{rows}"), stage.screen(columns, rows));
    }
    stage.press('\x1b');
    stage.press('\x1b');
    assert!(!stage.screen(80, 24).contains("why full"));
}

#[test]
fn escape_leaves_usage_for_the_panes_before() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    stage.press('3');
    stage.screen(80, 24);
    let before = stage.state.panes.clone();
    stage.press('d');
    stage.press('d');
    assert!(stage.screen(80, 24).contains("usage by group"));
    stage.press('\x1b');
    assert_eq!(stage.state.panes, before);
    stage.press('6');
    stage.press('\x1b');
    assert_eq!(stage.state.panes, before, "however one came to it");
}

#[test]
fn usage_is_sorted_and_filtered_and_its_columns_chosen() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    stage.press('6');
    (0..6).for_each(|_| drop(stage.press('d')));
    stage.screen(160, 48);
    "/failed>0".chars().for_each(|key| drop(stage.press(key)));
    assert!(stage.screen(160, 48).contains("1 of 4 values"), "{}", stage.screen(160, 48));
    stage.press('\n');
    assert!(stage.screen(160, 48).contains("filter: failed>0 1/4"), "{}", stage.screen(160, 48));
    stage.press('c');
    assert!(stage.screen(160, 48).contains("columns of the usage"), "{}", stage.screen(160, 48));
}

#[test]
fn a_frozen_view_keeps_usage_and_an_earlier_moment_does_not_invent_it() {
    let mut stage = TestDashboard::live_tls(options(), 12);
    stage.press('6');
    stage.screen(160, 48);
    stage.want(Intent::Freeze);
    let row = |stage: &mut TestDashboard| {
        let screen = stage.screen(160, 48);
        screen.lines().find(|line| line.contains("TLSv1.3")).unwrap_or_default().to_owned()
    };
    let then = row(&mut stage);
    assert!(then.contains("5,760"), "{then}");
    stage.pass(5);
    assert_eq!(row(&mut stage), then);
    stage.want(Intent::Seek(SeekTarget::PreviousInterval));
    let screen = stage.screen(160, 48);
    assert!(row(&mut stage).is_empty() && screen.contains("known of the present"), "{screen}");
    stage.press(' ');
    assert!(row(&mut stage).contains("8,160"), "{}", row(&mut stage));
}

#[test]
fn everything_of_tls_is_ascii_where_asked() {
    let mut stage = TestDashboard::live_tls(Options { glyphs: Glyphs::Ascii, ..options() }, 12);
    for keys in ["", "6", "\n"] {
        keys.chars().for_each(|key| drop(stage.press(key)));
        let screen = stage.screen(160, 48);
        assert!(screen.is_ascii(), "{screen}");
    }
}
