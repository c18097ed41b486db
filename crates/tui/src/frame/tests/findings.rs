//! Findings on the screen.

use insta::assert_snapshot;
use records::kinds::{Body, SettingRecord};
use records::setting::{Applies, Setting, Value};

use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, PaneAction, SeekTarget};
use crate::panes::PaneId;

/// The certificate of the run becomes one that expires on this day; the made-up run is of 2026-01-02.
fn certificate(stage: &mut TestDashboard, day: &str) {
    let value = Value::Text(format!("ECDSA P-256 for www.example.org and 3 more until {day} sha256:5b1e"));
    let name = "proxy.certificate".to_owned();
    let applies = Applies::NewConnections;
    let after = Setting { name: name.clone(), value, unit: String::new(), applies, range: None };
    let record = stage.run.event(Body::Setting(SettingRecord {
        name,
        before: "old".into(),
        after: Some(after),
        ..SettingRecord::default()
    }));
    stage.read(vec![record]);
}

fn with_findings() -> TestDashboard {
    let mut stage = TestDashboard::live(options(), 9);
    certificate(&mut stage, "2026-01-07");
    stage.run.lose(3);
    stage.pass(14);
    stage
}

#[test]
fn findings_stand_in_a_pane_or_are_counted_in_the_header() {
    let mut stage = with_findings();
    assert_snapshot!("findings_160x48", stage.screen(160, 48));
    assert_snapshot!("findings_80x24", stage.screen(80, 24));
    assert_snapshot!("findings_40x10", stage.screen(40, 10));
    let counted = stage.screen(160, 48);
    assert!(counted.contains("[2 FINDINGS] ") && !counted.contains("findings"), "{counted}");
    // They are also counted as problems, and the key that explains them is named.
    assert!(counted.contains("(+1 more)") && counted.contains("b why, and what to do"), "{counted}");
    for (shown, hidden) in [(Some(PaneId::Findings), None), (None, Some(PaneId::System))] {
        stage.state.panes.focus = shown;
        stage.state.panes.hidden = hidden.into_iter().collect();
        let screen = stage.screen(160, 48);
        assert!(screen.contains("critical A certificate expires in 5 days"), "{screen}");
        assert!(!screen.contains("FINDING"), "{screen}");
    }
    stage.state.panes.hidden = vec![PaneId::Findings];
    assert!(stage.screen(160, 48).contains("[2 FINDINGS] "));
}

#[test]
fn a_calm_run_has_no_pane_of_findings() {
    let screen = TestDashboard::live(options(), 9).screen(160, 48);
    assert!(!screen.contains("findings") && !screen.contains("FINDING"), "{screen}");
}

#[test]
fn figures_and_advice_of_a_finding_stand_over_the_panes() {
    let mut stage = with_findings();
    stage.press('b');
    assert_snapshot!("finding_details_160x48", stage.screen(160, 48));
    assert_snapshot!("finding_details_80x24", stage.screen(80, 24));
    assert_snapshot!("finding_details_40x10", stage.screen(40, 10));
    stage.press('j');
    assert!(stage.screen(80, 24).contains("records-lost, since "), "{}", stage.screen(80, 24));
    stage.press('b');
    assert!(!stage.screen(80, 24).contains("records-lost"));
}

#[test]
fn enter_opens_the_findings_while_their_pane_has_the_focus() {
    let mut stage = with_findings();
    stage.screen(160, 48);
    while stage.state.panes.focus != Some(PaneId::Findings) {
        stage.want(Intent::Pane(PaneAction::FocusNext));
    }
    stage.press('\n');
    assert!(stage.screen(160, 48).contains("certificate-expires, since "));
}

#[test]
fn an_earlier_moment_shows_the_findings_that_were_open_then() {
    let mut stage = with_findings();
    certificate(&mut stage, "2027-01-07");
    stage.pass(3);
    assert!(!stage.screen(160, 48).contains("A certificate expires"));
    for _ in 0..5 {
        stage.want(Intent::Seek(SeekTarget::PreviousInterval));
    }
    let screen = stage.screen(160, 48);
    assert!(screen.contains(" ! at its worst: A certificate expires in 5 days"), "{screen}");
    stage.press('b');
    let screen = stage.screen(160, 48);
    assert!(screen.contains("over by now: figures of when it became so severe"), "{screen}");
}

#[test]
fn a_finding_about_a_setting_is_shown_beside_it() {
    let mut stage = with_findings();
    stage.press('t');
    for _ in 0..100 {
        let at = stage.state.tuning.selected;
        if stage.state.settings()[at].name == "proxy.certificate" {
            break;
        }
        stage.press('j');
    }
    let screen = stage.screen(160, 48);
    assert!(screen.contains("critical: A certificate expires in 5 days"), "{screen}");
}

#[test]
fn the_days_of_a_certificate_are_found_on_wide_and_narrow_screens() {
    let mut stage = TestDashboard::live(options(), 9);
    for (day, words) in
        [("4096-01-01", "cert 2,071 years"), ("2026-04-02", "cert 90 days"), ("2026-01-01", "cert expired")]
    {
        certificate(&mut stage, day);
        stage.pass(1);
        let screen = stage.screen(160, 48);
        assert!(screen.lines().next().unwrap().contains(words), "{screen}");
        stage.press('t');
        stage.state.select_setting("proxy.certificate");
        assert!(stage.screen(80, 24).lines().skip(1).any(|line| line.contains(words)), "{screen}");
        stage.press('t');
    }
}
