//! The form of a new experiment, in the place of the experiments.

use ratatui::text::{Line, Span};

use super::form::{ExperimentForm, FormField};
use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::{heading, selected};

/// The cells of a field's label in the form.
const FORM_LABEL_CELLS: usize = 9;

/// Returns each field with its text, or a hint what to type.
pub(crate) fn lines(state: &State, form: &ExperimentForm, width: u16) -> Vec<Line<'static>> {
    let theme = state.theme;
    let cells = usize::from(width).saturating_sub(FORM_LABEL_CELLS);
    let titles = ["new A/B: Up Down move, Tab completes, Ctrl-s starts", "new A/B: Ctrl-s starts", "new A/B"];
    let mut lines = vec![heading(theme, &titles, "", width)];
    lines.extend(FormField::ALL.into_iter().map(|field| {
        let is_selected = field == form.field();
        let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
        let label = format!("{pointer}{:<1$}", field.label(), FORM_LABEL_CELLS - 1);
        let (text, style) = match form.text(field) {
            "" => (field.hint(), theme.quiet()),
            text => (text, theme.figure()),
        };
        let text = format::cut(text, cells, theme.glyphs);
        let line = Line::from(vec![
            Span::styled(label, theme.label()),
            Span::styled(format!("{text:<cells$}"), style),
        ]);
        if is_selected { selected(theme, line) } else { line }
    }));
    let hint = form.field().hint();
    // An empty field shows its hint, unless it has no room for all of it.
    if !form.text(form.field()).is_empty() || format::width(hint) > cells {
        let hint = format::wrapped(hint, usize::from(width)).into_iter();
        lines.extend(hint.map(|line| Line::styled(line, theme.quiet())));
    }
    lines
}
