//! Effects of keys and updates.

mod any_event;
mod arrangement;
mod clients;
mod control;
mod moments;
mod prompts;
mod remote;

use records::command::Command;
use records::setting::Value;

use crate::app::action::Effect;
use crate::app::testing::TestDashboard;

fn set(effects: &[Effect]) -> Option<(&str, &Value)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(Command::Set { name, value }) => Some((name.as_str(), value)),
        _ => None,
    })
}

/// Presses keys as they come from a terminal; `\n` is Enter and `\x1b` is Esc.
fn press(stage: &mut TestDashboard, keys: &str) -> Vec<Effect> {
    keys.chars().flat_map(|key| stage.press(key)).collect()
}
