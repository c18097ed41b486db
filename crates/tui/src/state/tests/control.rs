//! Keys that change load, settings and experiments.

use model::history::Update;
use model::runs::Level;
use records::command::Command;
use records::setting::Value;

use super::{press, set};
use crate::app::action::{Action, Effect};
use crate::app::testing::{TestDashboard, options, watching};
use crate::input::intent::{Direction, Intent, PaneAction, QuickControl};
use crate::options::Options;
use crate::table::ListMove;

#[test]
fn a_repeated_key_steps_from_the_value_already_asked_for() {
    let mut stage = TestDashboard::live(options(), 3);
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up))),
        Some(("load.rate", &Value::Number(5500.0)))
    );
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up))),
        Some(("load.rate", &Value::Number(6100.0)))
    );
    let screen = stage.screen(120, 24);
    assert!(screen.contains("OPEN loop 5,000/s") && screen.contains("asked 6100/s"), "{screen}");
    let record = stage.run.set("load.rate", Value::Number(6100.0)).unwrap();
    stage.read(vec![record]);
    stage.pass(1);
    let screen = stage.screen(120, 24);
    assert!(screen.contains("OPEN loop 6,100/s") && !screen.contains("asked"), "{screen}");
}

#[test]
fn a_change_never_confirmed_disappears() {
    let mut stage = TestDashboard::live(options(), 3);
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Resume, Direction::Up))),
        Some(("load.resume", &Value::Number(90.0)))
    );
    assert!(stage.screen(80, 24).contains("asked resume 90%"));
    stage.wait(4);
    assert!(!stage.screen(80, 24).contains("asked"));
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Resume, Direction::Up))),
        Some(("load.resume", &Value::Number(90.0)))
    );
}

#[test]
fn the_load_key_starts_and_stops_the_load() {
    let mut stage = TestDashboard::live(options(), 3);
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Running, Direction::Up))),
        Some(("load.running", &Value::Flag(false)))
    );
    let record = stage.run.set("load.running", Value::Flag(false)).unwrap();
    stage.read(vec![record]);
    stage.pass(1);
    assert!(stage.screen(80, 24).contains("STOPPED"));
    assert_eq!(
        set(&stage.want(Intent::Adjust(QuickControl::Running, Direction::Up))),
        Some(("load.running", &Value::Flag(true)))
    );
}

#[test]
fn a_command_that_cannot_be_sent_is_said() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up));
    stage.act(Action::NotSent("the program takes no commands any more"));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("takes no commands any more") && !screen.contains("asked"), "{screen}");
}

#[test]
fn a_key_without_a_load_says_why_nothing_happens() {
    let mut stage = TestDashboard::empty(options());
    assert_eq!(set(&stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up))), None);
    assert!(stage.screen(80, 24).contains("there is no run yet"));
}

#[test]
fn settings_are_staged_applied_and_taken_back() {
    let mut stage = TestDashboard::live(options(), 3);
    assert_eq!(set(&press(&mut stage, "te\x15")), None);
    assert_eq!(set(&press(&mut stage, "7000\n")), None, "staged");
    let screen = stage.screen(120, 30);
    assert!(screen.contains("1 staged") && screen.contains("> 7000"), "{screen}");
    assert_eq!(set(&press(&mut stage, "\n")), Some(("load.rate", &Value::Number(7000.0))));
    assert!(stage.screen(120, 30).contains("asked"));
    let record = stage.run.set("load.rate", Value::Number(7000.0)).unwrap();
    stage.read(vec![record]);
    stage.pass(1);
    let screen = stage.screen(160, 48);
    for part in ["*7000/s", "load.rate 5000/s > 7000/s", "here", "u: load.rate to 5000/s"] {
        assert!(screen.contains(part), "{part} in {screen}");
    }
    assert_eq!(set(&press(&mut stage, "u")), Some(("load.rate", &Value::Number(5000.0))));
    assert_eq!(set(&press(&mut stage, "u")), None);
    assert!(stage.screen(120, 30).contains("no change was made from here"));
}

#[test]
fn a_refused_value_says_why() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "te\x15fast\n");
    assert!(stage.screen(120, 30).contains("load.rate cannot be fast: expected a number from 0.001/s to"));
    press(&mut stage, "e\x150\n");
    assert!(stage.screen(120, 30).contains("load.rate cannot be 0/s: expected a number from 0.001/s"));
    press(&mut stage, "\x1bjjjjje");
    assert!(stage.screen(120, 30).contains("proxy.listen changes only at a restart"));
    stage.want(Intent::Scroll(ListMove::First));
    press(&mut stage, "e\x156000\n\n");
    let why = "load.rate cannot be 6000: the plan has stages";
    stage.act(Action::Update(Update::Notice(Level::Warning, why.to_owned())));
    let screen = stage.screen(120, 30);
    assert!(screen.contains(why) && !screen.contains("asked"), "{screen}");
}

#[test]
fn an_experiment_is_begun_by_its_plan_and_ended() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "a");
    assert!(stage.screen(120, 40).contains("no experiment yet"));
    press(&mut stage, "e");
    let screen = stage.screen(120, 40);
    assert!(screen.contains("setting load.rate") && screen.contains("A       5000/s"), "{screen}");
    assert_eq!(set(&press(&mut stage, "fast\x13")), None);
    let screen = stage.screen(120, 40);
    assert!(screen.contains("load.rate cannot be fast") && screen.contains("▶B       fast"), "{screen}");
    press(&mut stage, "\x156000/s");
    assert!(stage.screen(120, 40).contains("Ctrl-s starts, Enter goes on: 6m in all"));
    let effects = press(&mut stage, "\x13");
    let plan = Effect::Send(Command::Experiment("load.rate=5000/s..6000/s,normal".to_owned()));
    assert!(effects.contains(&plan), "{effects:?}");
    let why = "no experiment: pairs=3: 6 pairs are the fewest";
    stage.act(Action::Update(Update::Notice(Level::Warning, why.to_owned())));
    assert!(stage.screen(120, 40).contains(why), "it stands where it was asked for");
    assert!(press(&mut stage, "x").contains(&Effect::Send(Command::EndExperiment)));
}

#[test]
fn a_dashboard_without_control_offers_no_key_that_changes_anything() {
    let mut stage = TestDashboard::live(Options { watches: true, ..options() }, 3);
    stage.want(Intent::Help);
    let screen = stage.screen(120, 80);
    for meaning in ["start or stop the load", "set a numbered mark", "apply all staged values"] {
        assert!(!screen.contains(meaning), "{meaning}");
    }
    stage.want(Intent::Tune);
    press(&mut stage, "e\n");
    assert!(stage.screen(120, 40).contains("no control"));
}

#[test]
fn keys_that_change_something_do_nothing_behind_the_help() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.press('?');
    for key in ['n', ']', '$', 's', 'm', ' '] {
        stage.press(key);
    }
    stage.want(Intent::Back);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("LIVE") && !screen.contains("asked") && screen.contains("failed▼"), "{screen}");
}

#[test]
fn only_who_watches_can_go_back_to_the_shell() {
    let mut stage = TestDashboard::live(options(), 3);
    let suspends = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Suspend(_)));
    for screen in [Intent::Back, Intent::Pane(PaneAction::MaximiseLog), Intent::Help, Intent::Tune] {
        stage.want(screen);
        assert!(!suspends(&stage.want(Intent::Suspend)));
        let said = "Ctrl-Z would stop the proxy: use --headless and `tlsdash watch`";
        assert!(stage.screen(80, 24).contains(said), "{}", stage.screen(80, 24));
    }
    assert!(suspends(&TestDashboard::live(watching(), 3).want(Intent::Suspend)));
}
