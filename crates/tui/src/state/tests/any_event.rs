//! Whatever happens, every screen is drawn.

use model::history::Update;
use model::runs::Level;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::Intent;
use crate::input::keymap::BINDINGS;
use crate::options::Options;
use crate::state::screen::Screen;

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
            let text = records::text::clean::text(&text);
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
        watches in any::<bool>(),
    ) {
        let mut stage = TestDashboard::live(Options { watches, ..options() }, start);
        for (what, (columns, rows)) in events {
            happen(&mut stage, what);
            let screen = stage.screen(columns, rows);
            prop_assert_eq!(screen.lines().count(), usize::from(if columns == 0 { 0 } else { rows }));
            if let Some(selected) = stage.state.clients.selected {
                let rows = stage.state.clients.sight;
                let in_sight = stage.state.clients.page().iter().any(|row| row.id == selected);
                prop_assert!(rows == 0 || in_sight, "{} of {}", selected, rows);
            }
            if let Screen::Help { offset } = stage.state.screen {
                prop_assert!(offset <= crate::screens::help::view::offset_max(&stage.state));
            }
        }
    }
}
