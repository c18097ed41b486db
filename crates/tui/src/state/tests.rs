//! What keys and news do.

use proptest::collection::vec;
use proptest::prelude::*;
use telemetry::model::Level;
use telemetry::{Command, Stamp, Update, Value};

use super::{Action, Direction, Effect, Intent, ListMove, PaneAction, QuickControl, Screen, SeekTarget};
use crate::input::keymap::BINDINGS;
use crate::options::Options;
use crate::table::{Order, Row};
use crate::testing::{TestDashboard, options, watching};
use crate::view_model::{ClientRow, Span};

fn set(effects: &[Effect]) -> Option<(&str, &Value)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(Command::Set { name, value }) => Some((name.as_str(), value)),
        _ => None,
    })
}

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
    while stage.state.clients.order.column != ClientRow::total() {
        stage.want(Intent::SortNext);
    }
    assert!(totals(&stage).is_sorted_by(|a, b| a >= b));
    stage.want(Intent::SortReverse);
    assert!(totals(&stage).is_sorted());
}

#[test]
fn a_clients_rate_is_what_it_did_in_the_window() {
    let mut stage = TestDashboard::live(options(), 25);
    let rows = |stage: &TestDashboard| {
        let rows = stage.state.snapshot().table.rows.all();
        rows.iter().map(|row| (row.id, *row)).collect::<std::collections::HashMap<_, _>>()
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
fn the_window_goes_from_a_second_to_the_whole_run() {
    let mut stage = TestDashboard::live(options(), 5);
    for _ in 0..20 {
        stage.want(Intent::Window(Direction::Down));
    }
    assert_eq!(stage.state.span, Span::Last(1_000_000));
    assert!(stage.screen(80, 24).contains("latency, ms, 1 s"));
    for _ in 0..20 {
        stage.want(Intent::Window(Direction::Up));
    }
    assert_eq!(stage.state.span, Span::WholeRun);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("latency, ms, whole run") && screen.contains(" 24,990"), "{screen}");
}

#[test]
fn the_window_of_a_frozen_view_ends_where_it_was_frozen() {
    let mut stage = TestDashboard::live(options(), 12);
    stage.want(Intent::Freeze);
    let n = |stage: &TestDashboard| stage.state.figures().unwrap().latencies[5].n;
    stage.pass(20);
    assert_eq!(n(&stage), 10 * 4998);
    stage.want(Intent::Window(Direction::Down));
    assert_eq!(n(&stage), 5 * 4998);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("FROZEN at +00:12") && screen.contains("latency, ms, 5 s"), "{screen}");
}

#[test]
fn an_earlier_moment_shows_its_own_figures_and_settings() {
    let mut stage = TestDashboard::live(options(), 10);
    let change = stage.run.set("load.rate", Value::Number(6100.0)).unwrap();
    stage.read(vec![change]);
    stage.pass(10);
    stage.screen(160, 48);
    stage.want(Intent::ZoomOut);
    stage.want(Intent::Seek(SeekTarget::PreviousMark));
    stage.want(Intent::Seek(SeekTarget::Columns(-1)));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:10"), "{screen}");
    assert!(
        screen.contains("OPEN loop 5,000/s") && screen.contains("load.rate 5000 1/s (now 6100)"),
        "{screen}"
    );
    assert!(screen.contains("accepted 502/s") && screen.contains("n 9,996 in 2 s"), "{screen}");
    assert_eq!(stage.state.figures().unwrap().handshakes.full, 1_000);
    stage.want(Intent::Seek(SeekTarget::NextMark));
    assert!(stage.screen(160, 48).contains("FROZEN at +00:12"), "the column that begins with the change");
    stage.want(Intent::Back);
    assert!(stage.screen(160, 48).contains("LIVE 00:20"));
}

#[test]
fn seeking_stays_between_the_start_and_the_moment_of_freezing() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.screen(80, 24);
    (0..30).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(-1)))));
    assert!(stage.screen(80, 24).contains("FROZEN at +00:00"));
    stage.pass(5);
    (0..30).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::Columns(1)))));
    assert!(stage.screen(80, 24).contains("FROZEN at +00:10"));
}

#[test]
fn the_worst_latency_is_found() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.run.stall_us = 250_000;
    stage.pass(1);
    stage.run.stall_us = 0;
    stage.pass(10);
    stage.screen(160, 48);
    stage.want(Intent::Seek(SeekTarget::Worst));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("FROZEN at +00:11") && screen.contains("max 266 ms"), "{screen}");
}

#[test]
fn the_column_at_the_worst_latency_holds_it_when_ticks_wander() {
    for wander_us in [3_000, -3_000] {
        let mut stage = TestDashboard::live(options(), 0);
        for second in 1..=30 {
            stage.run.stall_us = if second == 20 { 250_000 } else { 0 };
            let mut records = stage.run.second();
            for Stamp { mono_us, realtime_us, .. } in records.iter_mut().map(|record| &mut record.stamp) {
                *mono_us = mono_us.saturating_add_signed(wander_us);
                *realtime_us = realtime_us.saturating_add_signed(wander_us);
            }
            stage.wait(1);
            stage.read(records);
        }
        for zoom in 0..5 {
            stage.want(Intent::Seek(SeekTarget::Worst));
            let screen = stage.screen(160, 48);
            let seconds = if wander_us < 0 { 19 } else { 20 };
            let said = [format!("FROZEN at +00:{seconds}"), format!(" at +00:{seconds}  ─max 266 ")];
            let is_said = said.iter().all(|text| screen.contains(text));
            assert!(is_said && screen.contains("max 266 ms"), "{wander_us} {zoom}: {screen}");
            let latencies = &stage.state.figures().unwrap().latencies;
            let response = latencies.iter().find(|row| row.class.title() == "response").unwrap();
            assert!(response.max_ns.unwrap() > 250_000_000, "{wander_us} {zoom}: {:?}", response.max_ns);
            stage.want(Intent::ZoomOut);
        }
    }
}

#[test]
fn the_window_at_the_worst_latency_holds_it() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.run.stall_us = 250_000;
    stage.pass(1);
    stage.run.stall_us = 0;
    stage.pass(60);
    stage.screen(160, 48);
    (0..4).for_each(|_| drop(stage.want(Intent::ZoomOut)));
    for window in 0..4 {
        stage.want(Intent::Seek(SeekTarget::Worst));
        let latencies = &stage.state.figures().unwrap().latencies;
        let response = latencies.iter().find(|row| row.class.title() == "response").unwrap();
        assert!(response.max_ns.unwrap() > 250_000_000, "window {window}: {:?}", response.max_ns);
        stage.want(Intent::Window(Direction::Down));
    }
}

#[test]
fn time_alone_is_drawn_only_where_it_shows() {
    let mut stage = TestDashboard::live(options(), 5);
    assert_eq!(stage.act(Action::Tick), []);
    stage.want(Intent::Freeze);
    assert_eq!(stage.act(Action::Tick), []);
    stage.wait(1);
    assert!(stage.screen(80, 24).contains("for 00:01"));
}

/// Presses keys as they come from a terminal; `\n` is Enter and `\x1b` is Esc.
fn press(stage: &mut TestDashboard, keys: &str) -> Vec<Effect> {
    keys.chars().flat_map(|key| stage.press(key)).collect()
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
fn a_prompt_keeps_what_is_refused_until_it_is_mended() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "tjjjje\x151.5\n");
    let screen = stage.screen(120, 30);
    assert!(screen.contains("load.threads: 1.5"), "{screen}");
    assert!(screen.contains("load.threads cannot be 1.5: expected a whole number"), "{screen}");
    press(&mut stage, "\x152\n");
    assert!(stage.state.prompt.is_none() && stage.state.tuning.count() == 1);
    press(&mut stage, "\x1b@13:05\n");
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
fn keys_that_change_something_do_nothing_behind_the_help() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.press('?');
    for key in ['n', ']', '$', 's', 'm', ' '] {
        stage.press(key);
    }
    stage.want(Intent::Back);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("LIVE") && !screen.contains("asked") && screen.contains("out MB/s▼"), "{screen}");
}

#[test]
fn a_live_view_stays_live_if_there_is_no_mark_to_go_to() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Seek(SeekTarget::NextMark));
    let screen = stage.screen(160, 48);
    assert!(screen.contains("LIVE") && screen.contains("no later mark"), "{screen}");
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
    for text in ["handshakes  full", "the client sent the alert unknown_ca", "connections"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    stage.want(Intent::Back);
    assert_eq!(stage.state.screen, Screen::Dashboard);
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
    assert_eq!(stage.state.settings()[stage.state.tuning.selected].name, "load.keepalive");
    for (word, meaning) in [("histogram", "heat map"), ("pause", "freeze the view"), ("exit", "quit")] {
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
    assert_eq!(stage.state.clients.order, Order::by::<ClientRow>(ClientRow::column("p99")));
    press(&mut stage, "\x1b:client 2001\n");
    assert!(matches!(stage.state.screen, Screen::Client(id) if id.to_string().starts_with("2001")));
    press(&mut stage, "\x1b:qqqqqq");
    assert!(stage.screen(120, 40).contains("nothing of that name"));
    assert_eq!(press(&mut stage, "\n").len(), 1, "nothing is done");
}

#[test]
fn an_experiment_is_begun_by_its_plan_and_ended() {
    let mut stage = TestDashboard::live(options(), 3);
    press(&mut stage, "a");
    assert!(stage.screen(120, 40).contains("no experiment yet"));
    press(&mut stage, "e");
    let screen = stage.screen(120, 40);
    assert!(screen.contains("setting load.rate") && screen.contains("A       5000/s"), "{screen}");
    assert_eq!(set(&press(&mut stage, "fast\n")), None);
    let screen = stage.screen(120, 40);
    assert!(screen.contains("load.rate cannot be fast") && screen.contains("▶B       fast"), "{screen}");
    press(&mut stage, "\x156000/s");
    assert!(stage.screen(120, 40).contains("Enter starts: 6m in all"));
    let effects = press(&mut stage, "\n");
    let plan = Effect::Send(Command::Experiment("load.rate=5000/s..6000/s,normal".to_owned()));
    assert!(effects.contains(&plan), "{effects:?}");
    let why = "no experiment: pairs=3: 6 pairs are the fewest";
    stage.act(Action::Update(Update::Notice(Level::Warning, why.to_owned())));
    assert!(stage.screen(120, 40).contains(why), "it stands where it was asked for");
    assert!(press(&mut stage, "x").contains(&Effect::Send(Command::EndExperiment)));
}

#[test]
fn a_read_only_dashboard_offers_no_key_that_changes_anything() {
    let mut stage = TestDashboard::live(Options { read_only: true, ..options() }, 3);
    stage.want(Intent::Help);
    let screen = stage.screen(120, 80);
    for meaning in ["start or stop the load", "set a numbered mark", "apply all staged values"] {
        assert!(!screen.contains(meaning), "{meaning}");
    }
    stage.want(Intent::Tune);
    press(&mut stage, "e\n");
    assert!(stage.screen(120, 40).contains("read-only"));
}

/// Anything that can happen to a dashboard.
#[derive(Clone, Debug)]
enum TestEvent {
    Wants(Intent),
    Types(char),
    Passes(u64),
    Waits(u64),
    Loses(u64),
    Says(String),
    CatchesUp,
    Ends,
}

fn test_event() -> impl Strategy<Value = (TestEvent, (u16, u16))> {
    let happens = prop_oneof![
        8 => (0..BINDINGS.len()).prop_map(|at| TestEvent::Wants(BINDINGS[at].intent)),
        4 => prop_oneof![any::<char>(), prop::char::range('0', '9'), Just('\n')].prop_map(TestEvent::Types),
        2 => (1..3_u64).prop_map(TestEvent::Passes),
        1 => (1..20_u64).prop_map(TestEvent::Waits),
        1 => (1..3_u64).prop_map(TestEvent::Loses),
        1 => any::<String>().prop_map(TestEvent::Says),
        1 => Just(TestEvent::CatchesUp),
        1 => Just(TestEvent::Ends),
    ];
    let small = (0..50_u16, 0..20_u16);
    let any_size = (0..220_u16, 0..70_u16);
    (happens, prop_oneof![small, any_size])
}

fn happen(stage: &mut TestDashboard, what: TestEvent) {
    match what {
        TestEvent::Wants(intent) => drop(stage.want(intent)),
        TestEvent::Types(key) => drop(stage.press(key)),
        TestEvent::Passes(seconds) => stage.pass(seconds),
        TestEvent::Waits(seconds) => stage.wait(seconds),
        TestEvent::Loses(seconds) => (0..seconds).for_each(|_| drop(stage.run.second())),
        TestEvent::Says(text) => {
            let text = telemetry::clean::text(&text);
            stage.act(Action::Update(Update::Notice(Level::Warning, text)));
        }
        TestEvent::CatchesUp => drop(stage.act(Action::Update(Update::CaughtUp))),
        TestEvent::Ends => {
            let stop = stage.run.stop();
            stage.read(vec![stop]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_event_at_every_size_is_drawn(
        start in 0..4_usize,
        events in vec(test_event(), 1..24),
        read_only in any::<bool>(),
    ) {
        let mut stage = TestDashboard::live(Options { read_only, ..options() }, start);
        for (what, (columns, rows)) in events {
            happen(&mut stage, what);
            let screen = stage.screen(columns, rows);
            prop_assert_eq!(screen.lines().count(), usize::from(if columns == 0 { 0 } else { rows }));
            if let Some(selected) = stage.state.clients.selected {
                let rows = crate::view::layout::client_rows(&stage.state);
                let in_sight = stage.state.clients.page().iter().any(|row| row.id == selected);
                prop_assert!(rows == 0 || in_sight, "{} of {}", selected, rows);
            }
            if let Screen::Help { offset } = stage.state.screen {
                prop_assert!(offset <= crate::view::help::offset_max(&stage.state));
            }
        }
    }
}
