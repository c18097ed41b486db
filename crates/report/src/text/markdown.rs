//! A report as Markdown tables, for a pull request or an issue.

use std::fmt::Write as _;

use records::metrics::Percentile;
use records::text::table::{Align, TextTable};

use crate::numbers::grouped;
use crate::report::Report;
use crate::report::latency::PERCENTILES;

/// Clients that are listed.
const CLIENTS_SHOWN: usize = 20;
/// Values of a dimension of usage that are listed.
const VALUES_SHOWN: usize = 10;
/// Events that are listed.
const EVENTS_SHOWN: usize = 100;

impl Report<'_> {
    /// The tables of the page.
    pub fn markdown(&self) -> String {
        let when = format!("{}{}", self.which(), self.when());
        let mut out = format!("# {}\n\n{}\n", escaped(&self.title()), escaped(&when));
        if let Some(text) = self.unfinished() {
            let _ = writeln!(out, "\n**{}**", escaped(&text));
        }
        let tiles = self.headline().into_iter().map(|tile| vec![tile.title, tile.value, tile.sentence]);
        table(&mut out, "In short", &["figure", "value", "in words"], tiles);
        self.finding_rows().markdown(&mut out, usize::MAX);
        self.conditions_table().markdown(&mut out, usize::MAX);
        self.changes_table().markdown(&mut out, EVENTS_SHOWN);
        list(&mut out, "Warnings", &self.warnings());
        self.latencies_markdown(&mut out);
        self.absent_rows().markdown(&mut out, usize::MAX);
        self.alert_rows().markdown(&mut out, EVENTS_SHOWN);
        self.experiment_rows().markdown(&mut out, usize::MAX);
        self.error_table().markdown(&mut out, usize::MAX);
        self.upstream_rows().markdown(&mut out, usize::MAX);
        self.certificate_rows().markdown(&mut out, usize::MAX);
        self.route_rows().markdown(&mut out, usize::MAX);
        self.http_status_rows().markdown(&mut out, usize::MAX);
        self.http_rows().markdown(&mut out, usize::MAX);
        self.request_table().markdown(&mut out, usize::MAX);
        self.status_table().markdown(&mut out, usize::MAX);
        self.handshake_rows().markdown(&mut out, usize::MAX);
        self.full_reason_rows().markdown(&mut out, usize::MAX);
        self.wall_time_rows().markdown(&mut out, usize::MAX);
        for table in self.usage_tables() {
            table.markdown(&mut out, VALUES_SHOWN);
        }
        self.client_rows().markdown(&mut out, CLIENTS_SHOWN);
        self.cpu_rows().markdown(&mut out, usize::MAX);
        self.event_rows().markdown(&mut out, EVENTS_SHOWN);
        self.environment_rows().markdown(&mut out, usize::MAX);
        self.setting_rows().markdown(&mut out, usize::MAX);
        list(&mut out, "Quality of the data", &self.quality());
        let made_by = escaped(&self.command);
        let _ = writeln!(out, "\nIn brackets: fewer than ten samples lie above. Made by {made_by}");
        out
    }

    fn latencies_markdown(&self, out: &mut String) {
        let percentiles = PERCENTILES.map(|percentile| percentile.label);
        let heads: Vec<&str> = ["ms"].into_iter().chain(percentiles).chain(["max", "mean", "n"]).collect();
        let latencies = self.latencies();
        let rows = latencies.iter().map(|latency| {
            let histogram = latency.histogram;
            let mut row = vec![latency.name()];
            row.extend(PERCENTILES.map(|Percentile { q, .. }| match latency.quantile(q) {
                None => String::new(),
                Some(quantile) if quantile.is_thin => format!("({})", latency.shown(quantile.ms)),
                Some(quantile) => latency.shown(quantile.ms),
            }));
            row.push(latency.shown(histogram.max_ns() as f64 / 1e6));
            row.push(latency.mean());
            row.push(grouped(histogram.count()));
            row
        });
        table(out, "Latencies", &heads, rows);
    }
}

/// Adds a list; nothing without lines.
fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(out, "- {}", escaped(line));
    }
}

/// Adds a table; nothing without rows.
pub(crate) fn table(out: &mut String, title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n## {title}\n\n| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// Markdown of this module as a terminal shows it best: tables in columns, nothing escaped.
pub fn columns(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let lines: Vec<&str> = markdown.lines().collect();
    for block in lines.chunk_by(|one, other| one.starts_with('|') == other.starts_with('|')) {
        if !block[0].starts_with('|') {
            out.extend(block.iter().map(|line| unescaped(line) + "\n"));
            continue;
        }
        let cells = |line: &&str| {
            let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
            cells.unwrap_or(line).split(" | ").map(unescaped).collect()
        };
        let mut rows = block.iter().filter(|line| !line.starts_with("|---")).map(cells);
        let headings: Vec<String> = rows.next().unwrap_or_default();
        let rows: Vec<Vec<String>> = rows.collect();
        let mut table = TextTable::default();
        for (at, heading) in headings.iter().enumerate() {
            let cells: Vec<String> = rows.iter().filter_map(|row| row.get(at).cloned()).collect();
            let align = if cells.iter().all(|cell| is_number(cell)) { Align::Right } else { Align::Left };
            table.column(align, heading, cells);
        }
        out += &table.text();
    }
    out
}

fn is_number(cell: &str) -> bool {
    cell.is_empty() || cell.starts_with(|c: char| c.is_numeric() || "(–-".contains(c))
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = text.replace("&lt;", "<").replace("&amp;", "&");
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

/// Escapes the special characters of Markdown and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '[' | ']' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_terminal_shows_columns() {
        let markdown = "# a &amp; b\n\n| ms | p50 | what |\n|---|---|---|\n| proxy | 2.000 | a \\| &lt;b |\n| load response | (10.000) |  |\n";
        assert_eq!(
            super::columns(markdown),
            "# a & b\n\nms                  p50  what\nproxy             2.000  a | <b\nload response  (10.000)\n"
        );
    }
}
