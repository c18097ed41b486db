//! Alerts on the screen.

use insta::assert_snapshot;
use records::kinds::{AlertState, Body};
use records::setting::{Setting, Value};

use crate::app::action::Effect;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Intent, SeekTarget};
use crate::options::{AlertNotify, Options};
use crate::theme::scheme::ColourScheme;

fn read_alert(stage: &mut TestDashboard, number: u64, event: AlertState) {
    let record = stage.run.alert(number, event);
    stage.read(vec![record]);
}

fn with_alert(options: Options) -> TestDashboard {
    let mut stage = TestDashboard::live(options, 9);
    read_alert(&mut stage, 1, AlertState::Fired);
    stage.pass(14);
    stage
}

#[test]
fn an_alert_has_a_badge_a_banner_a_mark_and_a_sign_on_its_figure() {
    let mut stage = with_alert(options());
    assert_snapshot!("alert_160x48", stage.screen(160, 48));
    assert_snapshot!("alert_80x24", stage.screen(80, 24));
    assert_snapshot!("alert_40x10", stage.screen(40, 10));
    assert!(stage.screen(30, 5).contains("!1"));
}

#[test]
fn figures_of_the_header_stand_out_while_an_alert_on_them_fires() {
    let palette = ColourScheme::named("16").unwrap().palette();
    let mut stage = TestDashboard::live(Options { palette, ..options() }, 9);
    // Of tiles, p99 is the first; without tiles it is named.
    let sizes = [
        ((160, 48), " 5.32 ms", " 5.32! ms"),
        ((80, 24), "5.32 ms", "5.32! ms"),
        ((40, 10), "5.32ms", "5.32!ms"),
    ];
    for fires in [false, true] {
        for ((columns, rows), calm, firing) in sizes {
            let (text, screen) = (if fires { firing } else { calm }, stage.styled(columns, rows));
            let mut lines = screen.lines().skip(4).skip_while(|line| !line.contains(text));
            let before = lines.next().unwrap().split("5.32").next().unwrap();
            let at = before.chars().count();
            let looks = lines.next().unwrap();
            let look = if fires { format!(" {at}:Red+b ") } else { format!(" {at}:b ") };
            assert!(looks.contains(&look), "{look} in {looks}");
        }
        read_alert(&mut stage, 1, AlertState::Fired);
    }
}

#[test]
fn several_alerts_are_counted_and_a_resolved_one_leaves_the_screen() {
    let mut stage = with_alert(options());
    read_alert(&mut stage, 2, AlertState::Fired);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("[2 ALERTS] ") && screen.contains("(+1 more)"), "{screen}");
    for number in [1, 2] {
        read_alert(&mut stage, number, AlertState::Resolved);
    }
    let screen = stage.screen(160, 48);
    assert!(!screen.contains("ALERT"), "{screen}");
    assert!(
        screen.contains("alert resolved: response.p99 is 7.21 ms; worst 9.2 ms, firing for 72 s"),
        "{screen}"
    );
}

/// Half a minute of a run with this alert.
fn watched(alert: &str) -> TestDashboard {
    let mut stage = TestDashboard::empty(options());
    let mut start = stage.run.start();
    let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
    let value = Value::Text(alert.into());
    run.settings.push(Setting { name: "alert.1".into(), value, ..run.settings[0].clone() });
    stage.read(vec![start]);
    stage.pass(32);
    stage
}

#[test]
fn an_alert_without_enough_samples_says_so_as_long_as_it_lacks_them() {
    let mut stage = watched("exchange.p99.99 > 5ms over 5s");
    let why = "alert.1 cannot fire, needs over 30s: 24990 of 100000 samples in 5 s";
    for (columns, rows) in [(160, 48), (80, 24)] {
        assert!(stage.screen(columns, rows).contains(why), "{}", stage.screen(columns, rows));
    }
    assert!(
        stage.screen(40, 10).contains("! alert.1 cannot fire, needs over 30s"),
        "{}",
        stage.screen(40, 10)
    );
    stage.press('t');
    let screen = stage.screen(160, 48);
    let row = screen.lines().find(|line| line.contains("alert.1  "));
    assert!(row.is_some_and(|row| row.contains("needs over 30s")), "{screen}");
    for enough in ["exchange.p99.99 > 5ms over 30s", "exchange.max > 5ms over 5s", "off"] {
        let screen = watched(enough).screen(160, 48);
        assert!(!screen.contains("cannot fire"), "{screen}");
    }
    let mut fired = watched("exchange.p99.99 > 5ms over 5s");
    read_alert(&mut fired, 1, AlertState::Fired);
    let screen = fired.screen(160, 48);
    assert!(screen.contains("cannot be judged, 24,990 of 100,000 samples; firing for 00:0"), "{screen}");
    assert!(!screen.contains("cannot fire"), "{screen}");
    let never = watched("exchange.p99.999999 > 5ms").screen(160, 48);
    assert!(never.contains("alert.1 cannot fire, too few samples at this rate"), "{never}");
}

#[test]
fn an_earlier_moment_shows_the_alerts_that_fired_then() {
    let mut stage = with_alert(options());
    read_alert(&mut stage, 1, AlertState::Resolved);
    stage.pass(5);
    assert!(!stage.screen(160, 48).contains("[ALERT]"));
    for target in [SeekTarget::PreviousMark, SeekTarget::PreviousInterval, SeekTarget::PreviousInterval] {
        stage.want(Intent::Seek(target));
    }
    let screen = stage.screen(160, 48);
    assert!(screen.contains("[ALERT]"), "{screen}");
}

#[test]
fn an_alert_that_is_just_recorded_notifies_and_an_old_one_does_not() {
    let notified = |how| {
        let mut stage = TestDashboard::live(Options { alert_notify: how, ..options() }, 3);
        let record = stage.run.alert(1, AlertState::Fired);
        let resolved = stage.run.alert(1, AlertState::Resolved);
        let mut effects = stage.act_on(vec![record]);
        effects.extend(stage.act_on(vec![resolved]));
        let texts = effects.into_iter().filter_map(|effect| match effect {
            Effect::Notify(text) => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    assert_eq!(notified(AlertNotify::Off), Vec::<String>::new());
    assert_eq!(notified(AlertNotify::Bell), ["alert: response.p99 is 7.21 ms > 5 ms for 30 s (over 10 s)"]);
    let mut reading = TestDashboard::empty(Options { alert_notify: AlertNotify::Bell, ..options() });
    let records = vec![reading.run.start(), reading.run.alert(1, AlertState::Fired)];
    assert!(!reading.act_on(records).iter().any(|effect| matches!(effect, Effect::Notify(_))));
}
