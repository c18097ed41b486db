//! A report as Markdown tables, for a pull request or an issue.

use std::fmt::Write as _;

use telemetry::Percentile;

use crate::report::Report;

/// Clients that are listed.
const CLIENTS_SHOWN: usize = 20;

impl Report<'_> {
    /// The tables.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", escaped(&self.title()));
        let environment = self.environment().into_iter().map(|(name, value)| vec![name.to_owned(), value]);
        table(&mut out, "Environment", &["", ""], environment);
        let heads: Vec<&str> = ["ms", "n", "mean"]
            .into_iter()
            .chain(Percentile::TABLE.map(|percentile| percentile.label))
            .chain(["max"])
            .collect();
        table(
            &mut out,
            "Latencies",
            &heads,
            self.latencies().iter().map(|latency| {
                let histogram = latency.histogram;
                let mut row = vec![latency.name(), histogram.count().to_string()];
                row.push(histogram.mean_ns().map(|ns| ms(ns / 1e6)).unwrap_or_default());
                row.extend(Percentile::TABLE.map(|Percentile { q, .. }| match latency.quantile(q) {
                    None => String::new(),
                    Some(quantile) if quantile.is_thin => format!("({})", ms(quantile.ms)),
                    Some(quantile) => ms(quantile.ms),
                }));
                row.push(ms(histogram.max_ns() as f64 / 1e6));
                row
            }),
        );
        table(
            &mut out,
            "Handshakes",
            &["by", "", "count"],
            self.handshakes()
                .into_iter()
                .map(|(kind, name, count)| vec![kind.to_owned(), name, count.to_string()]),
        );
        self.alerts(&mut out);
        self.experiments(&mut out);
        let heads = ["client", "connections", "full", "resumed", "bytes in", "bytes out"];
        table(
            &mut out,
            "Clients",
            &heads,
            self.clients().iter().take(CLIENTS_SHOWN).map(|client| {
                let counts = [
                    client.connections,
                    client.handshakes_full,
                    client.handshakes_resumed,
                    client.bytes_in,
                    client.bytes_out,
                ];
                std::iter::once(client.client.clone()).chain(counts.map(|count| count.to_string())).collect()
            }),
        );
        let _ = writeln!(out, "\n## Quality of the data\n");
        for line in self.quality() {
            let _ = writeln!(out, "- {}", escaped(&line));
        }
        let _ = writeln!(
            out,
            "\nIn brackets: fewer than ten samples lie above. Made by {}",
            escaped(&self.command)
        );
        out
    }

    fn experiments(&self, out: &mut String) {
        let rows = self.summary.experiments.iter().flat_map(|experiment| {
            experiment.metrics.iter().flat_map(move |compared| {
                let stages = [("A against A", &compared.calibration), ("B against A", &compared.verdict)];
                stages.into_iter().filter_map(move |(stage, verdict)| {
                    let verdict = verdict.as_ref()?;
                    let estimate = verdict.estimate.as_ref().map(|estimate| {
                        format!(
                            "{:+.2} ({:+.2} to {:+.2})",
                            estimate.effect_percent, estimate.low_percent, estimate.high_percent
                        )
                    });
                    let p = verdict.estimate.as_ref().map(|estimate| format!("{:.4}", estimate.p));
                    Some(vec![
                        format!("{} {} against {}", experiment.setting, experiment.a, experiment.b),
                        format!("{}, {stage}", compared.metric),
                        format!("{} {}", verdict.outcome, verdict.reason).trim_end().to_owned(),
                        estimate.unwrap_or_default(),
                        p.unwrap_or_default(),
                    ])
                })
            })
        });
        table(out, "Experiments", &["setting", "figure", "verdict", "difference, %", "p"], rows);
    }
}

fn ms(value: f64) -> String {
    format!("{value:.3}")
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
