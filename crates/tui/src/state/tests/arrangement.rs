//! The arrangement of panes, columns and filters, and its file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::action::{Action, Effect};
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, PaneAction, Preset};
use crate::panes::PaneId;
use crate::state::screen::Screen;
use crate::table::{ChoiceEdit, ListMove};

fn press(stage: &mut TestDashboard, keys: &str) {
    keys.chars().for_each(|key| drop(stage.press(key)));
}

#[test]
fn columns_order_and_panes_are_kept_and_restored() {
    let mut stage = TestDashboard::live(options(), 5);
    // The first column, `failed`, is moved to the right of `out`, and `why` is hidden.
    press(&mut stage, "c");
    (0..2).for_each(|_| drop(stage.want(Intent::EditChoice(ChoiceEdit::Later))));
    stage.want(Intent::Scroll(ListMove::First));
    stage.want(Intent::EditChoice(ChoiceEdit::Toggle));
    press(&mut stage, "\x1bsS");
    stage.screen(160, 48);
    press(&mut stage, "xj");
    let effects = stage.want(Intent::EditChoice(ChoiceEdit::Toggle));
    let Some(Effect::Keep(kept)) = effects.last() else { panic!("{effects:?}") };
    let mut next = TestDashboard::live(options(), 5);
    next.act(Action::Restore(kept.clone()));
    assert_eq!(next.state.kept(), *kept);
    let screen = next.screen(160, 48);
    assert!(!screen.contains("full handshake") && !screen.contains("latency, 10 s"), "{screen}");
    let heading = screen.lines().find(|line| line.contains("clients 1-")).unwrap();
    let place = |name: &str| heading.find(name);
    assert!(place("out").is_some() && place("out") < place("failed"), "{heading}");
    assert!(!heading.contains("why") && heading.contains("in kB/s▲"), "{heading}");
    stage.want(Intent::Back);
    press(&mut stage, "1");
    assert!(stage.screen(160, 48).contains("latency, 10 s"));
}

#[test]
fn a_look_at_usage_alone_is_not_kept() {
    let mut stage = TestDashboard::live_tls(options(), 5);
    press(&mut stage, "2");
    let before = stage.state.kept();
    press(&mut stage, "d");
    assert!(!stage.state.panes.shows(PaneId::Clients), "{:?}", stage.state.panes);
    assert_eq!(stage.state.kept(), before);
    press(&mut stage, "1");
    assert_ne!(stage.state.kept(), before);
}

#[test]
fn a_broken_arrangement_changes_nothing_and_is_said() {
    for (text, why) in [
        ("[", "it is not JSON"),
        ("{\"version\":2}", "it is of version 2, not 1"),
        ("{\"version\":1,\"clients\":{\"columns\":[\"lag\"]}}", "the column \"lag\" does not exist"),
        ("{\"version\":1,\"panes\":{\"hidden\":[\"map\"]}}", "the pane \"map\" does not exist"),
    ] {
        let mut stage = TestDashboard::live(options(), 5);
        let before = stage.state.kept();
        stage.act(Action::Restore(text.to_owned()));
        assert_eq!(stage.state.kept(), before);
        let screen = stage.screen(120, 40);
        assert!(screen.contains(why), "{why}: {screen}");
    }
}

#[test]
fn panes_are_focused_maximised_and_resized() {
    let mut stage = TestDashboard::live(options(), 5);
    let rows = |stage: &mut TestDashboard, id| {
        stage.screen(160, 48);
        crate::frame::layout::of_screen(&stage.state).unwrap().area(id).height
    };
    let want = |stage: &mut TestDashboard, action| drop(stage.want(Intent::Pane(action)));
    rows(&mut stage, PaneId::Log);
    want(&mut stage, PaneAction::FocusNext);
    assert_eq!(stage.state.panes.focus, Some(PaneId::Timeline));
    want(&mut stage, PaneAction::FocusPrevious);
    assert_eq!(stage.state.panes.focus, Some(PaneId::Log));
    want(&mut stage, PaneAction::FocusPrevious);
    assert_eq!(stage.state.panes.focus, Some(PaneId::Clients));
    (0..2).for_each(|_| want(&mut stage, PaneAction::FocusNext));
    assert_eq!(stage.state.panes.focus, Some(PaneId::Timeline));
    let before = rows(&mut stage, PaneId::Timeline);
    want(&mut stage, PaneAction::Shorter);
    assert_eq!(rows(&mut stage, PaneId::Timeline), before - 1);
    want(&mut stage, PaneAction::Taller);
    assert_eq!(rows(&mut stage, PaneId::Timeline), before);
    want(&mut stage, PaneAction::Maximise);
    assert_eq!((rows(&mut stage, PaneId::Clients), rows(&mut stage, PaneId::Timeline)), (0, 40));
    stage.want(Intent::Back);
    assert!(rows(&mut stage, PaneId::Clients) > 0);
    want(&mut stage, PaneAction::Preset(Preset::Only(PaneId::Clients)));
    assert_eq!((rows(&mut stage, PaneId::Timeline), rows(&mut stage, PaneId::Latency)), (0, 0));
    want(&mut stage, PaneAction::Preset(Preset::Tuning));
    assert_eq!(stage.state.screen, Screen::Tuning);
}

#[test]
fn a_filter_compares_figures_and_networks_and_says_what_is_wrong() {
    let mut stage = TestDashboard::live(options(), 5);
    press(&mut stage, "/10.0.0.0/8 out>1MB");
    let screen = stage.screen(160, 48);
    assert!(
        screen.contains("─ filter: 10.0.0.0/8 out>1MB 19/20 ─") && !screen.contains("2001:db8"),
        "{screen}"
    );
    press(&mut stage, " lag>1");
    let why = "no column lag; there are client, failed, why, out";
    assert_eq!(stage.screen(120, 40).matches(why).count(), 1, "{}", stage.screen(120, 40));
    press(&mut stage, "\n");
    assert!(stage.screen(120, 40).contains(&format!("filter: {why}")));
    press(&mut stage, "/\x1b/fa");
    stage.act(Action::Type(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE)));
    stage.act(Action::Type(KeyEvent::new(KeyCode::Char('e'), KeyModifiers::NONE)));
    stage.act(Action::Type(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE)));
    assert!(stage.screen(120, 40).contains("filter clients: failed>"), "{}", stage.screen(120, 40));
}
