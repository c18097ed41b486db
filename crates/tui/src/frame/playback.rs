//! The position and speed of a replay, and a line for the whole run.
//!
//! ```text
//! ▶ 4×  +01:12 / 1:00:00  12:05:12Z  ━━━●───────1────────▲──────────────────────
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::state::State;
use crate::state::moment::playback::{PlaybackLine, PlaybackState};
use crate::theme::format;
use crate::widgets::parts::put;

/// The minimum cells of the line.
const BAR_CELLS_MIN: usize = 10;

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(line) = state.playback_line().filter(|_| !area.is_empty()) else { return };
    let theme = state.theme;
    let [played, paused, ended] = theme.glyphs.playback();
    let (sign, style) = match line.state {
        PlaybackState::Playing => (played, theme.good()),
        PlaybackState::Paused => (paused, theme.notice()),
        PlaybackState::AtEnd => (ended, theme.notice()),
    };
    let speed = line.speed.words(theme.glyphs);
    let mut spans = vec![
        Span::styled(format!("{sign} "), style),
        Span::styled(format!("{speed:<5}"), theme.figure()),
        Span::styled(words(state, &line), theme.label()),
    ];
    let bar = bar_cells(state, &line, area.width);
    if bar >= BAR_CELLS_MIN {
        spans.push(Span::raw("  "));
        spans.extend(drawn_bar(state, &line, bar));
    }
    put(frame, area, &[Line::from(spans)]);
}

/// Returns position, length and time of day; while the run is read again, the progress of that.
fn words(state: &State, line: &PlaybackLine) -> String {
    let clock = |us: u64| records::text::quantity::elapsed_text(us / 1_000_000);
    let whole = clock(line.length_us);
    let at = format!("{:>1$}", format!("+{}", clock(line.at_us)), whole.len() + 1);
    let time = state.time_of_day(line.realtime_us);
    let reading = state.read_share().map(|share| format!("  reading {:>3.0}%", share * 100.0));
    format!("{at} / {whole}  {time}{}", reading.unwrap_or_default())
}

fn bar_cells(state: &State, line: &PlaybackLine, width: u16) -> usize {
    usize::from(width).saturating_sub(SIGN_CELLS + SPEED_CELLS + format::width(&words(state, line)) + 2)
}

/// The cells of the sign and the blank after it; in ASCII the sign has two.
const SIGN_CELLS: usize = 3;
const SPEED_CELLS: usize = 5;

fn drawn_bar(state: &State, line: &PlaybackLine, cells: usize) -> Vec<Span<'static>> {
    let theme = state.theme;
    let [over, head, rest] = theme.glyphs.bar();
    let place = |share: f64| ((share * cells as f64) as usize).min(cells - 1);
    let here = place(line.at_us as f64 / line.length_us.max(1) as f64);
    let mut signs: Vec<char> = (0..cells).map(|at| if at < here { over } else { rest }).collect();
    for &(share, is_mark) in &line.marks {
        signs[place(share)] = if is_mark { '|' } else { theme.glyphs.marker() };
    }
    signs[here] = head;
    let text = |part: &[char]| part.iter().collect::<String>();
    vec![
        Span::styled(text(&signs[..here]), theme.graph()),
        Span::styled(text(&signs[here..=here]), theme.figure()),
        Span::styled(text(&signs[here + 1..]), theme.quiet()),
    ]
}

/// Returns the part of the run, in thousandths, at a cell of the line.
pub(crate) fn place_at(state: &State, area: Rect, x: u16) -> Option<u64> {
    let line = state.playback_line()?;
    let cells = bar_cells(state, &line, area.width);
    let at = usize::from(x.checked_sub(area.right() - u16::try_from(cells).ok()?)?);
    (cells >= BAR_CELLS_MIN).then_some((at * 1_000 / cells) as u64)
}
