//! Parts of the panes: headings, and lines of named figures that are left out if there is no room.

use model::insight::{Expiry, Severity};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::theme::format;
use crate::theme::{Glyphs, Theme};
use crate::view_model::classes::Quantile;

/// Blanks between the segments of a line.
const GAP: &str = "  ";
/// The cells of the first word of a status line.
const NAME_CELLS: usize = 7;

/// Writes lines below each other, as many as fit. A `Paragraph` would search for words to wrap, at twice the
/// cost.
pub(crate) fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>]) {
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        let mut row = Rect { y, height: 1, ..area };
        for span in line {
            let used = put_text(frame.buffer_mut(), row, &span.content, line.style.patch(span.style));
            row.x += used;
            row.width -= used;
        }
    }
}

/// Writes as much of a text as fits into a row, and returns the cells that it took. Most texts have one cell per
/// character, so their grapheme clusters need no search.
fn put_text(buffer: &mut Buffer, row: Rect, text: &str, style: Style) -> u16 {
    if !text.chars().all(is_cell) {
        return buffer.set_stringn(row.x, row.y, text, usize::from(row.width), style).0 - row.x;
    }
    let mut used = 0;
    for (character, x) in text.chars().zip(row.x..row.right()) {
        buffer[(x, row.y)].set_char(character).set_style(style);
        used += 1;
    }
    used
}

/// Returns whether a character always takes one cell of its own: ASCII, dashes and dots, box drawing, blocks, geometric
/// shapes and Braille.
fn is_cell(character: char) -> bool {
    matches!(
        character,
        ' '..='~' | '\u{2010}'..='\u{2027}' | '\u{2500}'..='\u{25FC}' | '\u{2800}'..='\u{28FF}'
    )
}

/// Draws a heading over the whole width: the longest title that fits, a line, and the names of columns above
/// their figures.
pub(crate) fn heading(theme: Theme, titles: &[&str], columns: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let rule = theme.glyphs.rule();
    let names = columns.trim_start();
    let title = longest_fitting(theme, titles, width.saturating_sub(format::width(names) + 4));
    let used = 3 + format::width(&title);
    // One blank precedes the first name; the line fills the rest of the title's side.
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

/// Draws a heading whose text at the right is no column, and quiet.
pub(crate) fn quiet_heading(theme: Theme, titles: &[&str], right: &str, width: u16) -> Line<'static> {
    let mut line = heading(theme, titles, right, width);
    if let Some(last) = line.spans.last_mut().filter(|_| !right.is_empty()) {
        last.style = theme.quiet();
    }
    line
}

/// Returns the first text that fits, or the last one truncated.
pub(crate) fn longest_fitting(theme: Theme, texts: &[&str], cells: usize) -> String {
    let fitting = texts.iter().find(|text| format::width(text) <= cells).or_else(|| texts.last());
    fitting.map_or_else(String::new, |text| format::cut(text, cells, theme.glyphs))
}

/// A part of a line that is shown whole or not at all.
#[derive(Clone, Debug)]
pub(crate) struct StatusItem {
    spans: Vec<Span<'static>>,
    /// Segments with the highest rank are left out first.
    rank: u8,
}

impl StatusItem {
    /// Returns a segment of a word and a figure.
    pub(crate) fn figure(theme: Theme, rank: u8, name: &str, figure: impl Into<String>) -> Self {
        let name = Span::styled(format!("{name} "), theme.label());
        Self { spans: vec![name, Span::styled(figure.into(), theme.figure())], rank }
    }

    pub(crate) fn text(rank: u8, text: impl Into<String>, style: Style) -> Self {
        Self { spans: vec![Span::styled(text.into(), style)], rank }
    }

    pub(crate) fn with_rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    fn width(&self) -> usize {
        self.spans.iter().map(|span| format::width(&span.content)).sum()
    }
}

/// Returns a status line: its name, and as many segments as fit.
pub(crate) fn status_line(theme: Theme, name: &str, segments: Vec<StatusItem>, width: u16) -> Line<'static> {
    let mut spans = vec![Span::styled(format!("{name:<NAME_CELLS$}"), theme.label())];
    spans.extend(fit(segments, usize::from(width).saturating_sub(NAME_CELLS)));
    Line::from(spans)
}

/// Returns as many segments as fit, in order; those with the highest rank are left out, of equal ones the
/// last.
pub(crate) fn fit(mut segments: Vec<StatusItem>, width: usize) -> Vec<Span<'static>> {
    let needed = |segments: &[StatusItem]| {
        let gaps = GAP.len() * segments.len().saturating_sub(1);
        segments.iter().map(StatusItem::width).sum::<usize>() + gaps
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

/// Returns the segments in order on at most `rows` rows. The last row omits segments with the highest rank.
pub(crate) fn wrap(segments: Vec<StatusItem>, width: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut rest = segments;
    while lines.len() + 1 < rows && !rest.is_empty() {
        let mut used = 0;
        let mut fits = |segment: &StatusItem| {
            used += segment.width() + GAP.len();
            used <= width + GAP.len()
        };
        let taken = rest.iter().map_while(|segment| fits(segment).then_some(())).count().max(1);
        let behind = rest.split_off(taken);
        lines.push(Line::from(fit(std::mem::replace(&mut rest, behind), width)));
    }
    lines.extend((!rest.is_empty()).then(|| Line::from(fit(rest, width))));
    lines
}

/// Draws a share from 0 to 1 as a bar in the cells of a column of a table.
pub(crate) fn bar(theme: Theme, share: f64, cells: usize) -> Span<'static> {
    let cells = cells.saturating_sub(2);
    let [bar, ..] = theme.glyphs.bar();
    // What is there is seen.
    let filled = ((share * cells as f64).round() as usize).clamp(usize::from(share > 0.0), cells);
    Span::styled(format!("  {:<cells$}", bar.to_string().repeat(filled)), theme.graph())
}

/// Draws the shares of named counts as parts of one bar, in strengths that differ without colour.
pub(crate) fn share_bar(
    theme: Theme,
    parts: &[(&str, u64)],
    cells: usize,
    hues: &[Style],
) -> Vec<Span<'static>> {
    let signs = match theme.glyphs {
        Glyphs::Unicode => ['█', '▒', '▓', '░'],
        Glyphs::Ascii => ['#', '-', '=', '.'],
    };
    let sum = parts.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
    if sum == 0 {
        return vec![Span::styled(theme.glyphs.rule().to_string().repeat(cells), theme.quiet())];
    }
    let (mut before, mut start) = (0, 0);
    let hues = if hues.is_empty() { &[theme.graph()] } else { hues };
    let part = |((&(_, n), sign), hue): ((&(&str, u64), char), &Style)| {
        before += n;
        let end = (before as f64 / sum as f64 * cells as f64).round() as usize;
        let text = sign.to_string().repeat(end - start);
        start = end;
        Span::styled(text, *hue)
    };
    parts.iter().zip(signs.into_iter().cycle()).zip(hues.iter().cycle()).map(part).collect()
}

/// The cells of the name of a line of shares.
pub(crate) const NAMED_CELLS: usize = 9;
/// The cells of the bar of such a line.
const BAR_CELLS: usize = 12;

/// Draws the shares of named counts: a bar, and the words for those above zero.
pub(crate) fn share_line(
    theme: Theme,
    name: &str,
    parts: &[(&str, u64)],
    cells: usize,
    words: impl Fn(&str, u64) -> String,
) -> Line<'static> {
    let parts: Vec<(&str, u64)> = parts.iter().copied().filter(|&(_, n)| n > 0).collect();
    let mut spans = vec![Span::styled(format!("{name:<NAMED_CELLS$}"), theme.label())];
    // A bar of one value says nothing.
    let (bar, gap) = if parts.len() == 1 { (0, "") } else { (BAR_CELLS, GAP) };
    spans.extend(share_bar(theme, &parts, bar, &[]));
    let room = cells.saturating_sub(NAMED_CELLS + bar + gap.len());
    let named = parts.iter().map(|&(name, n)| words(name, n));
    let named = format::cut(&named.collect::<Vec<_>>().join("  "), room, theme.glyphs);
    spans.push(Span::styled(format!("{gap}{named}"), theme.quiet()));
    Line::from(spans)
}

/// The fewest and the most cells of a bar beside words of several lengths.
const FLEXIBLE_CELLS: (usize, usize) = (4, 24);

/// Draws the shares of named counts with the longest words that leave room for a bar; of the shortest, as many as fit. A
/// bar of one value is left out.
pub(crate) fn flexible_share_line(
    theme: Theme,
    name: &str,
    parts: &[(&str, u64)],
    cells: usize,
    (words, hues): (&[Vec<Span<'static>>], &[Style]),
) -> Line<'static> {
    let room = cells.saturating_sub(format::width(name) + 2);
    let is_single = parts.iter().filter(|(_, n)| *n > 0).count() == 1;
    let (bar_min, bar_max) = if is_single { (0, 0) } else { FLEXIBLE_CELLS };
    let needed = |words: &[Span<'static>]| {
        let gaps = GAP.len() * words.len().saturating_sub(1);
        words.iter().map(|word| format::width(&word.content)).sum::<usize>() + gaps
    };
    let fits = |words: &&Vec<Span<'static>>| needed(words) + bar_min <= room;
    let mut shown = words.iter().find(fits).or_else(|| words.last()).cloned().unwrap_or_default();
    while shown.len() > 1 && !fits(&&shown) {
        shown.pop();
    }
    if let [only] = &mut shown[..] {
        only.content = format::cut(&only.content, room.saturating_sub(bar_min), theme.glyphs).into();
    }
    let bar = room.saturating_sub(needed(&shown)).min(bar_max);
    let mut spans = vec![Span::styled(format!("{name} "), theme.label())];
    spans.extend(share_bar(theme, parts, bar, hues));
    spans.extend((bar > 0).then(|| Span::raw(" ")));
    for (at, word) in shown.into_iter().enumerate() {
        spans.extend((at > 0).then(|| Span::raw(GAP)));
        spans.push(word);
    }
    Line::from(spans)
}

/// Formats a rate, or the sign for none.
pub(crate) fn rate(theme: Theme, rate: Option<f64>) -> String {
    rate.map_or_else(|| theme.glyphs.none().to_string(), |rate| format!("{}/s", format::per_second(rate)))
}

/// Formats bytes per second, or the sign for none.
pub(crate) fn byte_rate(theme: Theme, rate: Option<f64>) -> String {
    rate.map_or_else(|| theme.glyphs.none().to_string(), format::bytes_per_second)
}

/// Formats a share in percent, or the sign for none.
pub(crate) fn share(theme: Theme, share: Option<f64>) -> String {
    share.map_or_else(|| theme.glyphs.none().to_string(), format::percent)
}

/// Returns a selected line as one bar: what is quiet elsewhere would be a hole in it.
pub(crate) fn selected(theme: Theme, line: Line<'static>) -> Line<'static> {
    let plain = |style: Style| style.remove_modifier(Modifier::BOLD);
    let is_quiet = |span: &Span<'_>| plain(span.style) == plain(theme.quiet());
    let spans =
        line.spans.into_iter().map(|span| if is_quiet(&span) { span.style(Style::new()) } else { span });
    Line::from(spans.collect::<Vec<_>>()).style(theme.selected())
}

/// Formats a percentile in milliseconds, with a cell on either side for the brackets of one with fewer than
/// ten samples above it.
pub(crate) fn quantile(theme: Theme, quantile: Quantile, cells: usize) -> Span<'static> {
    let text = quantile_text(theme, quantile);
    if quantile.thin {
        let style = theme.quiet().remove_modifier(Modifier::BOLD);
        Span::styled(format!("{text:>cells$}"), style)
    } else {
        Span::styled(format!("{text:>0$} ", cells - 1), theme.figure())
    }
}

/// Formats a percentile in milliseconds, in brackets if fewer than ten samples lie above it.
pub(crate) fn quantile_text(theme: Theme, quantile: Quantile) -> String {
    let text = format::latency(quantile.ns, quantile.resolution, theme.glyphs);
    if quantile.thin { format!("({text})") } else { text }
}

/// The days from which on years are enough.
const YEARS_FROM: i64 = 5 * 365;

/// Returns the days that a certificate has left, in the colour of their urgency.
pub(crate) fn certificate_words(theme: Theme, expiry: Expiry) -> (String, Style) {
    let text = match expiry.days {
        ..=-1 => "cert expired".to_owned(),
        1 => "cert 1 day".to_owned(),
        days @ ..YEARS_FROM => format!("cert {} days", format::count(days.unsigned_abs())),
        days => format!("cert {} years", format::count(days.unsigned_abs() / 365)),
    };
    (text, expiry_style(theme, expiry))
}

/// The colour of how urgent it is to renew a certificate.
pub(crate) fn expiry_style(theme: Theme, expiry: Expiry) -> Style {
    match expiry.severity {
        Some(Severity::Critical) => theme.critical(),
        Some(_) => theme.warning(),
        None => theme.good().remove_modifier(Modifier::BOLD),
    }
}
