//! What the panes are made of: headings, and lines of named figures that give way where there is no room.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::format;
use crate::theme::Theme;
use crate::view_model::Quantile;

/// Blanks between the segments of a line.
const GAP: &str = "  ";
/// Cells of the word at the beginning of a status line.
const NAME_CELLS: usize = 7;

/// Writes lines below each other, as many as fit. A paragraph would look for words to wrap and cost twice as much.
pub(super) fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>]) {
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        let mut row = Rect { y, height: 1, ..area };
        for span in line {
            let used = put_text(frame.buffer_mut(), row, &span.content, line.style.patch(span.style));
            row.x += used;
            row.width -= used;
        }
    }
}

/// Writes a text at the beginning of a row as far as it fits, and gives the cells that it took. Most texts have a cell for
/// each byte, so that nobody has to look for characters that belong together.
fn put_text(buffer: &mut Buffer, row: Rect, text: &str, style: Style) -> u16 {
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return buffer.set_stringn(row.x, row.y, text, usize::from(row.width), style).0 - row.x;
    }
    let cells = text.bytes().zip(row.x..row.right());
    let used = cells.len() as u16;
    for (byte, x) in cells {
        buffer[(x, row.y)].set_char(char::from(byte)).set_style(style);
    }
    used
}

/// A heading over the whole width: the longest title that fits, a line, and the names of columns where they stand.
pub(super) fn heading(theme: Theme, titles: &[&str], columns: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let rule = theme.glyphs.rule();
    let names = columns.trim_start();
    let title = longest_fitting(theme, titles, width.saturating_sub(format::width(names) + 4));
    let used = 3 + format::width(&title);
    // One blank before the first name; the line fills what is left of the title's side.
    let fill = width.saturating_sub(used + format::width(names) + usize::from(!names.is_empty()));
    let mut spans = vec![
        Span::styled(format!("{rule} "), theme.quiet()),
        Span::styled(title, theme.heading()),
        Span::styled(format!(" {}", rule.to_string().repeat(fill)), theme.quiet()),
    ];
    if !names.is_empty() {
        spans.push(Span::styled(format!(" {names}"), theme.label()));
    }
    Line::from(spans)
}

/// The first text that fits, or the last one cut.
pub(super) fn longest_fitting(theme: Theme, texts: &[&str], cells: usize) -> String {
    let fitting = texts.iter().find(|text| format::width(text) <= cells).or_else(|| texts.last());
    fitting.map_or_else(String::new, |text| format::cut(text, cells, theme.glyphs))
}

/// A part of a line that is shown whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    spans: Vec<Span<'static>>,
    /// The segments with the highest rank give way first.
    rank: u8,
}

impl Segment {
    /// A word and a figure.
    pub(super) fn figure(theme: Theme, rank: u8, name: &str, figure: impl Into<String>) -> Self {
        let name = Span::styled(format!("{name} "), theme.label());
        Self { spans: vec![name, Span::styled(figure.into(), theme.figure())], rank }
    }

    /// A text.
    pub(super) fn text(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { spans: vec![Span::styled(text.into(), style)], rank }
    }

    fn width(&self) -> usize {
        self.spans.iter().map(|span| format::width(&span.content)).sum()
    }
}

/// A status line: its name, and as many segments as fit.
pub(super) fn status_line(theme: Theme, name: &str, segments: Vec<Segment>, width: u16) -> Line<'static> {
    let mut spans = vec![Span::styled(format!("{name:<NAME_CELLS$}"), theme.heading())];
    spans.extend(fit(segments, usize::from(width).saturating_sub(NAME_CELLS)));
    Line::from(spans)
}

/// As many segments as fit, in their order; those with the highest rank give way, of equal ones the last.
pub(super) fn fit(mut segments: Vec<Segment>, width: usize) -> Vec<Span<'static>> {
    let needed = |segments: &[Segment]| {
        let gaps = GAP.len() * segments.len().saturating_sub(1);
        segments.iter().map(Segment::width).sum::<usize>() + gaps
    };
    while needed(&segments) > width {
        let highest = segments.iter().map(|segment| segment.rank).max();
        let Some(at) = segments.iter().rposition(|segment| Some(segment.rank) == highest) else { break };
        segments.remove(at);
    }
    let mut spans = Vec::new();
    for segment in segments {
        if !spans.is_empty() {
            spans.push(Span::raw(GAP));
        }
        spans.extend(segment.spans);
    }
    spans
}

/// A rate, or the sign for none.
pub(super) fn rate(theme: Theme, rate: Option<f64>) -> String {
    rate.map_or_else(|| theme.glyphs.none().to_string(), |rate| format!("{}/s", format::per_second(rate)))
}

/// Bytes a second, or the sign for none.
pub(super) fn byte_rate(theme: Theme, rate: Option<f64>) -> String {
    rate.map_or_else(|| theme.glyphs.none().to_string(), format::bytes_per_second)
}

/// A share in percent, or the sign for none.
pub(super) fn share(theme: Theme, share: Option<f64>) -> String {
    share.map_or_else(|| theme.glyphs.none().to_string(), format::percent)
}

/// A percentile in milliseconds, with a place on either side for the brackets of one that rests on fewer than ten samples
/// above it.
pub(super) fn quantile(theme: Theme, quantile: Quantile, cells: usize) -> Span<'static> {
    let text = quantile_text(quantile);
    if quantile.thin {
        let style = theme.quiet().remove_modifier(Modifier::BOLD);
        Span::styled(format!("{text:>cells$}"), style)
    } else {
        Span::styled(format!("{text:>0$} ", cells - 1), theme.figure())
    }
}

/// A percentile in milliseconds, in brackets if it rests on fewer than ten samples above it.
pub(super) fn quantile_text(quantile: Quantile) -> String {
    let text = format::millis(quantile.ns);
    if quantile.thin { format!("({text})") } else { text }
}
