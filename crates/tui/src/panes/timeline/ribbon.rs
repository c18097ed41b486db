//! The values that an experiment switched, above the time: `A` and `B` where each began, a column of both as `=`.

use ratatui::Frame;
use ratatui::layout::Rect;
use records::kinds::Arm;

use super::model::ColumnArm;
use super::time_axis::{LABEL_CELLS, TimeAxis};
use crate::state::State;

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let (theme, axis) = (state.theme, TimeAxis::of(state, area));
    let [_, light, _, dark, _] = theme.glyphs.shades();
    let label = format!("{:>1$} ", "A/B", usize::from(LABEL_CELLS) - 1);
    frame.buffer_mut().set_string(area.x, area.y, label, theme.quiet());
    let mut before = None;
    for (place, arm) in state.arms.iter().enumerate() {
        let Some(xs) = axis.cells_of(place) else { continue };
        let begins = *arm != before;
        before = *arm;
        let (letter, fill, style) = match arm {
            None => continue,
            Some(ColumnArm::One(Arm::A)) => ('A', light, theme.quiet()),
            Some(ColumnArm::One(Arm::B)) => ('B', dark, theme.label()),
            Some(ColumnArm::Both) => ('=', '=', theme.quiet()),
        };
        for (x, at) in xs.zip(0..) {
            let character = if begins && at == 0 { letter } else { fill };
            frame.buffer_mut()[(x, area.y)].set_char(character).set_style(style);
        }
    }
}
