//! What stands in place of the figures before the first client.
//!
//! ```text
//! no client has come yet
//!
//! listens on    127.0.0.1:8443, ECDSA P-256, 2 workers
//! forwards to   unix:/tmp/app.sock
//! try           curl -k https://127.0.0.1:8443/
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::put;

const NAME_CELLS: usize = 14;

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(figures) = state.figures() else { return };
    let theme = state.theme;
    let mut lines = vec![Line::styled("no client has come yet", theme.heading()), Line::default()];
    let (listen, upstream) = figures.target.split_once(" > ").unwrap_or((&figures.target, ""));
    let rows = [
        ("listens on", format!("{listen}, {}", figures.setup), theme.label()),
        ("forwards to", upstream.to_owned(), theme.label()),
        ("try", format!("curl -k https://{}/", reachable(listen)), theme.figure()),
        ("records", state.options.source.clone(), theme.quiet()),
    ];
    let cells = usize::from(area.width).saturating_sub(NAME_CELLS);
    lines.extend(rows.into_iter().filter(|(_, text, _)| !text.is_empty()).map(|(name, text, style)| {
        Line::from(vec![
            Span::styled(format!("{name:<NAME_CELLS$}"), theme.quiet()),
            Span::styled(format::cut(&text, cells, theme.glyphs), style),
        ])
    }));
    let widest = (lines.iter().map(Line::width).max().unwrap_or(0) as u16).min(area.width);
    let height = (lines.len() as u16).min(area.height);
    let (x, y) = (area.x + (area.width - widest) / 2, area.y + (area.height - height) / 3);
    put(frame, Rect { x, y, width: widest, height }, &lines);
}

/// Returns an address that a client on this host can use, of one that is listened on: `0.0.0.0:8443`, `[::]:8443`, `:8443`.
fn reachable(listen: &str) -> String {
    let Some((host, port)) = listen.rsplit_once(':') else { return listen.to_owned() };
    let host = match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn an_address_of_all_hosts_is_reached_on_this_one() {
        assert_eq!(reachable("0.0.0.0:8443"), "127.0.0.1:8443");
        assert_eq!(reachable("[::]:8443"), "[::1]:8443");
        assert_eq!(reachable("192.0.2.1:443"), "192.0.2.1:443");
    }
}
