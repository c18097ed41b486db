//! What a key has changed, in words for the message line. Screens that open say themselves what they are.

use crate::input::intent::{Intent, PaneAction, Preset};
use crate::panes::PaneId;
use crate::panes::tables::usage::model::name_of;
use crate::state::State;
use crate::theme::format;
use crate::view_model::span::Span;

/// Returns what is shown after a request; `None` for one that changes nothing of it, or says so elsewhere.
pub(crate) fn outcome(state: &State, intent: Intent) -> Option<String> {
    Some(match intent {
        Intent::Freeze if state.is_replay() => return None,
        Intent::Freeze if state.view.past().is_none() => state.present_words().to_owned(),
        Intent::Freeze => format!("frozen{}", state.at_past_moment()),
        Intent::ZoomOut | Intent::ZoomIn | Intent::ZoomToFit => {
            format!("{} a column", format::span(state.column_us()))
        }
        Intent::NextClass => format!("over time: {}", state.time.class(state.run()?).title()),
        Intent::ToggleTimeline if state.time.shows_heat => "heat map shown".to_owned(),
        Intent::ToggleTimeline => "heat map hidden".to_owned(),
        Intent::Window(_) => match state.span {
            Span::Last(us) => format!("window {}", format::span(us)),
            Span::WholeRun => "window: the whole run".to_owned(),
        },
        Intent::SortNext | Intent::SortReverse => {
            let list = state.list();
            format!("{} by {}", list.name(), state.table(list).order_words())
        }
        Intent::NextDimension => format!("usage by {}", name_of(state.usage.dimension)),
        Intent::Pane(action) => arranged(state, action)?,
        _ => return None,
    })
}

/// Returns which panes are shown, or what has become of the one in focus.
fn arranged(state: &State, action: PaneAction) -> Option<String> {
    let panes = &state.panes;
    Some(match action {
        PaneAction::FocusNext | PaneAction::FocusPrevious => format!("focus on {}", panes.focus?.name()),
        PaneAction::Taller | PaneAction::Shorter => {
            let (id, rows) = panes.rows.last()?;
            format!("{} gets {rows} rows", id.name())
        }
        // The settings beside the panes are seen.
        PaneAction::Preset(Preset::Tuning) => return None,
        _ if panes.maximised.is_none() && panes.hidden.is_empty() => "all panes".to_owned(),
        _ => {
            let (shown, hidden): (Vec<_>, Vec<_>) = PaneId::ALL.into_iter().partition(|id| panes.shows(*id));
            let (words, named) =
                if hidden.len() < shown.len() { ("all panes but", hidden) } else { ("only", shown) };
            format!("{words} {}", named.into_iter().map(PaneId::name).collect::<Vec<_>>().join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::app::testing::{TestDashboard, options};

    #[test]
    fn each_key_that_changes_what_is_shown_says_what_it_is_now() {
        let mut stage = TestDashboard::live(options(), 25);
        for (key, words) in [
            ('+', "window 30 s"),
            ('-', "window 10 s"),
            ('o', "2 s a column"),
            ('O', "1 s a column"),
            ('f', "over time: service"),
            ('v', "heat map hidden"),
            ('v', "heat map shown"),
            ('s', "clients by why, ascending"),
            ('S', "clients by why, descending"),
            ('z', "only clients"),
            ('z', "all panes"),
            ('2', "only clients, findings, log"),
            ('1', "all panes"),
            (' ', "frozen at 12:04:25Z, +00:25"),
            (',', "at 12:04:24Z, +00:24"),
            ('0', "at 12:04:00Z, +00:00"),
            ('n', "no later mark or change"),
            (' ', "live"),
        ] {
            stage.press(key);
            for size in [(160, 48), (80, 24)] {
                let screen = stage.screen(size.0, size.1);
                assert!(screen.lines().last().unwrap().starts_with(words), "{key}: {screen}");
            }
        }
    }

    #[test]
    fn a_message_gives_way_to_the_next_key_or_to_the_keys_after_some_seconds() {
        let mut stage = TestDashboard::live(options(), 5);
        let footer = |stage: &mut TestDashboard| stage.screen(80, 24).lines().last().unwrap().to_owned();
        stage.press('+');
        assert!(footer(&mut stage).starts_with("window 30 s  ? help"));
        stage.press('j');
        assert!(footer(&mut stage).starts_with("? help"));
        stage.press('+');
        stage.pass(9);
        assert!(footer(&mut stage).starts_with("window 1 min"));
        stage.pass(1);
        assert!(footer(&mut stage).starts_with("? help"));
    }
}
