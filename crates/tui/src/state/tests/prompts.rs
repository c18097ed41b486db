//! Prompts and the palette.

use super::press;
use crate::app::action::{Action, Effect};
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::List;
use crate::panes::tables::clients::model::ClientRow;
use crate::state::screen::Screen;
use crate::table::Row;

#[test]
fn a_prompt_keeps_refused_text_until_it_is_valid() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "tjjjje\x151.5\n");
    let screen = stage.screen(120, 30);
    assert!(screen.contains("load.threads: 1.5"), "{screen}");
    assert!(screen.contains("load.threads cannot be 1.5: expected a whole number"), "{screen}");
    press(&mut stage, "\x152\n");
    assert!(stage.state.prompt.is_none() && stage.state.tuning.count() == 1);
    press(&mut stage, "\x1b\x1b@13:05\n");
    let screen = stage.screen(120, 30);
    assert!(
        screen.contains("13:05 is outside the run: it goes from 12:04:00Z to 12:04:03Z, +00:00 to +00:03"),
        "{screen}"
    );
    press(&mut stage, "\x15+00:02");
    assert!(stage.screen(120, 30).contains("12:04:02Z, +00:02"), "{}", stage.screen(120, 30));
    press(&mut stage, "\n");
    assert!(stage.screen(120, 30).contains("FROZEN"));
}

#[test]
fn pasted_text_is_typed_into_a_prompt_and_is_not_a_command() {
    let mut stage = TestDashboard::live(options(), 3);
    let pasted = || Action::Paste("qqq\n".to_owned());
    let effects = stage.act(pasted());
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Leave(_))), "{effects:?}");
    assert!(stage.screen(120, 30).contains("pasted text is not a command"), "{}", stage.screen(120, 30));
    press(&mut stage, "/");
    stage.act(pasted());
    assert_eq!(stage.state.prompt.as_ref().unwrap().text(), "qqq");
}

#[test]
fn a_prompt_completes_words_and_recalls_what_was_entered() {
    use crossterm::event::KeyCode::{BackTab, Down, Tab, Up};
    let type_code = |stage: &mut TestDashboard, code| {
        let key = crossterm::event::KeyEvent::new(code, crossterm::event::KeyModifiers::NONE);
        stage.act(Action::Type(key));
    };
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "tjje\x15o");
    let text = |stage: &TestDashboard| stage.state.prompt.as_ref().unwrap().text().to_owned();
    type_code(&mut stage, Tab);
    assert_eq!(text(&stage), "on");
    type_code(&mut stage, Tab);
    assert_eq!(text(&stage), "off");
    assert!(stage.screen(120, 30).contains("on > off; on or off"), "{}", stage.screen(120, 30));
    type_code(&mut stage, BackTab);
    assert_eq!(text(&stage), "on");
    press(&mut stage, "\n\x1b/10.0.0.1\n/\x15zz");
    type_code(&mut stage, Up);
    assert_eq!(text(&stage), "10.0.0.1");
    type_code(&mut stage, Up);
    assert_eq!(text(&stage), "10.0.0.1", "there is nothing earlier");
    type_code(&mut stage, Down);
    assert_eq!(text(&stage), "zz");
    press(&mut stage, "\x15failed>0 10.");
    type_code(&mut stage, Tab);
    let last = text(&stage).strip_prefix("failed>0 ").unwrap().to_owned();
    assert!(last.parse::<std::net::IpAddr>().is_ok(), "{last}");
}

#[test]
fn commands_settings_and_clients_are_found_by_a_few_letters() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, ":wrstlat");
    assert!(stage.screen(120, 40).contains("to the worst latency in memory"));
    press(&mut stage, "\n");
    assert!(stage.screen(120, 40).contains("FROZEN"));
    press(&mut stage, "\x1b:keepal\n");
    assert_eq!(stage.state.screen, Screen::Tuning);
    assert_eq!(stage.state.settings()[stage.state.tuning.selected].name, "load.keep-alive");
    for (word, meaning) in
        [("histogram", "show or hide the heat map"), ("pause", "freeze the view"), ("exit", "quit")]
    {
        press(&mut stage, &format!("\x1b:{word}"));
        let screen = stage.screen(120, 40);
        assert!(screen.lines().any(|line| line.contains(&format!("▶{meaning}"))), "{word}: {screen}");
    }
    press(&mut stage, "\x1b:load.resume");
    assert!(
        stage
            .screen(120, 40)
            .lines()
            .any(|line| line.contains("▶setting load.resume") && line.contains("80%"))
    );
    press(&mut stage, "\x1b:sort by p99\n");
    assert_eq!(stage.state.clients.order.column, ClientRow::column("p99"));
    press(&mut stage, "\x1b:client 2001\n");
    assert_eq!(stage.state.screen, Screen::Details(List::Clients));
    assert!(stage.state.clients.opened.is_some_and(|id| id.to_string().starts_with("2001")));
    press(&mut stage, "\x1b:qqqqqq");
    assert!(stage.screen(120, 40).contains("nothing of that name"));
    assert_eq!(press(&mut stage, "\n").len(), 1, "nothing is done");
}
