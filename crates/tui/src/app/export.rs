//! Exports of the screen: files, and text for the clipboard.

use std::path::{Path, PathBuf};

use model::summary::Summary;
use output_file::OutputError;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use records::metrics::{ClientCounter, Percentile, TimeResolution};
use serde_json::{Value, json};

use crate::frame::view;
use crate::panes::tables::clients::model::ClientRow;
use crate::state::State;
use crate::table;
use crate::view_model::ViewModel;
use crate::view_model::classes::{LatencyRow, Quantile};

/// New files to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Export {
    what: &'static str,
    files: Vec<(PathBuf, String)>,
}

impl Export {
    /// The present view: the screen as text in `NAME.txt`, and its figures with the summary of the run in `NAME.json`.
    pub(crate) fn of(state: &State, name: &str, summary: &Summary) -> Self {
        let figures = state.figures().map(|figures| view_json(state, figures));
        let json = json!({ "schema": 1, "view": figures, "summary": summary });
        let files = [("txt", screen_text(state)), ("json", format!("{json:#}\n"))];
        let file = |(ending, text)| (PathBuf::from(format!("{name}.{ending}")), text);
        Self { what: "view", files: files.map(file).into() }
    }

    /// The report page of a run.
    pub(crate) fn page(name: &str, html: String) -> Self {
        Self { what: "report", files: vec![(PathBuf::from(name), html)] }
    }

    /// Writes the files, none of which may exist, and says where they are.
    ///
    /// # Errors
    /// With a sentence: what was tried, and why it failed. What was written of files that are not whole is taken away.
    pub(crate) fn write(&self) -> Result<String, String> {
        for (at, (path, text)) in self.files.iter().enumerate() {
            output_file::write_new(path, text).map_err(|error| {
                self.files[..at].iter().for_each(|(path, _)| drop(std::fs::remove_file(path)));
                failed(path, &error)
            })?;
        }
        let names: Vec<String> = self.files.iter().map(|(path, _)| path.display().to_string()).collect();
        Ok(format!("the {} was written to {}", self.what, names.join(" and ")))
    }
}

fn failed(path: &Path, error: &OutputError) -> String {
    match error {
        OutputError::Exists => format!("{} exists and is left as it is", path.display()),
        error => format!("cannot write {}: {error}", path.display()),
    }
}

/// The screen as text, a line for each row.
pub(crate) fn screen_text(state: &State) -> String {
    let (columns, rows) = state.size();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let Ok(_) = terminal.draw(|frame| view(state, frame));
    let mut text = String::new();
    for row in terminal.backend().buffer().content().chunks(usize::from(columns.max(1))) {
        let line: String = row.iter().map(Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What the panes show, in the units of the summary: microseconds, bytes, events a second.
fn view_json(state: &State, figures: &ViewModel) -> Value {
    let span_s = match figures.span {
        crate::view_model::span::Span::Last(us) => Some(us as f64 / 1e6),
        crate::view_model::span::Span::WholeRun => None,
    };
    let mut view = json!({
        "run": figures.run,
        "target": figures.target,
        "source": state.options.source,
        "frozen_at_s": state.earlier().map(|_| figures.duration_us as f64 / 1e6),
        "window_s": span_s,
        "latency_us": figures.latencies.iter().map(latency_json).collect::<Vec<_>>(),
        "clients": state.clients.page().iter().map(client_json).collect::<Vec<_>>(),
        "warnings": figures.warnings.iter().map(|warning| &warning.0).collect::<Vec<_>>(),
    });
    if figures.http.is_some() {
        view["routes"] = state.all_routes().iter().map(table::row_json).collect();
    }
    view
}

/// Microseconds; at the resolution of a log a bound.
fn us(ns: u64, resolution: TimeResolution) -> Value {
    json!(resolution.known_us(ns as f64 / 1e3))
}

fn quantile_json(quantile: Option<Quantile>) -> Value {
    let quantile = quantile
        .map(|quantile| json!({ "us": us(quantile.ns, quantile.resolution), "is_thin": quantile.thin }));
    quantile.unwrap_or(Value::Null)
}

fn latency_json(row: &LatencyRow) -> Value {
    let us = |ns: u64| us(ns, row.resolution);
    let percentiles = Percentile::TABLE.into_iter().zip(row.quantiles);
    let percentiles: serde_json::Map<_, _> = percentiles
        .map(|(percentile, quantile)| (percentile.label.to_owned(), quantile_json(quantile)))
        .collect();
    json!({
        "class": row.class.title(),
        "percentiles": percentiles,
        "p99_95": [row.p99.low_ns.map(us), row.p99.high_ns.map(us)],
        "max": row.max_ns.map(us),
        "per_second": row.per_second,
        "n": row.n,
        "resolution": row.resolution.us(),
        "absent": row.absent,
    })
}

fn client_json(row: &ClientRow) -> Value {
    json!({
        "client": row.id.to_string(),
        "in_per_second": row.in_per_second,
        "out_per_second": row.out_per_second,
        "exchanges_per_second": row.exchanges_per_second,
        "p99": quantile_json(row.latency.map(|latency| latency.p99)),
        "open": row.open,
        "errors": row.counted(ClientCounter::Errors),
        "bytes_in": row.counted(ClientCounter::BytesIn),
        "bytes_out": row.counted(ClientCounter::BytesOut),
        "columns": table::row_json(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::action::Effect;
    use crate::app::testing::{TestDashboard, options};

    fn copied(effects: &[Effect]) -> &str {
        let copied = effects.iter().find_map(|effect| match effect {
            Effect::Copy(text) => Some(text.as_str()),
            _ => None,
        });
        copied.expect("something was copied")
    }

    #[test]
    fn copy_takes_the_selected_client_else_the_screen() {
        let mut stage = TestDashboard::live(options(), 3);
        let screen = stage.screen(80, 24);
        assert_eq!(copied(&stage.press('y')), screen);
        assert!(stage.screen(120, 24).contains("the screen sent to the terminal's clipboard"));
        stage.press('j');
        // The one whose connections fail comes first.
        assert_eq!(copied(&stage.press('y')), "10.0.0.23");
        stage.press('\n');
        let about = copied(&stage.press('y')).to_owned();
        assert!(about.starts_with("client 10.0.0.23\nnow  "), "{about}");
    }

    #[test]
    fn a_time_at_the_resolution_of_a_log_is_no_number() {
        let resolution = TimeResolution::from_us(1_000);
        let quantile = |ns| quantile_json(Some(Quantile { ns, thin: false, resolution }));
        assert_eq!(quantile(1_000_400), json!({ "us": { "at_most": 1_000.0 }, "is_thin": false }));
        assert_eq!(quantile(12_004_000), json!({ "us": 12_000.0, "is_thin": false }));
    }

    #[test]
    fn a_name_that_ends_in_html_writes_the_report_page() {
        let path = std::env::temp_dir().join(format!("tlsdash-page-{}.html", std::process::id()));
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('e');
        stage.press('\x15');
        path.display().to_string().chars().for_each(|key| drop(stage.press(key)));
        assert!(stage.screen(160, 48).contains("writes the report page of what is in memory to /"));
        let effects = stage.press('\n');
        let page = effects.iter().find_map(|effect| match effect {
            Effect::Export(page) => Some(page),
            _ => None,
        });
        assert_eq!(page.unwrap().write(), Ok(format!("the report was written to {}", path.display())));
        let source = &stage.state.options.source;
        let html = std::fs::read_to_string(&path).unwrap();
        assert!(html.contains(&format!("{} {source}", stage.state.shown_run_id().unwrap())), "{html}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn export_writes_new_files_and_never_overwrites() {
        let folder = std::env::temp_dir().join(format!("tlsdash-export-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut stage = TestDashboard::live(options(), 3);
        let screen = stage.screen(160, 48);
        stage.press('e');
        assert!(stage.screen(160, 48).contains("write to files: tlsdash-1a2b3c4d-120403Z"));
        stage.press('\x15');
        let name = folder.join("view").display().to_string();
        name.chars().for_each(|key| drop(stage.press(key)));
        let effects = stage.press('\n');
        let exported = effects.iter().find_map(|effect| match effect {
            Effect::Export(view) => Some(view),
            _ => None,
        });
        let view = exported.expect("the view is to be written");
        assert_eq!(view.write(), Ok(format!("the view was written to {name}.txt and {name}.json")));
        assert_eq!(std::fs::read_to_string(format!("{name}.txt")).unwrap(), screen);
        let json: Value = serde_json::from_slice(&std::fs::read(format!("{name}.json")).unwrap()).unwrap();
        assert_eq!(json["view"]["latency_us"][0]["class"], "response");
        assert_eq!(json["summary"]["schema"], 1);
        assert_eq!(view.write(), Err(format!("{name}.txt exists and is left as it is")));
        std::fs::remove_file(format!("{name}.txt")).unwrap();
        assert_eq!(view.write(), Err(format!("{name}.json exists and is left as it is")));
        assert!(!Path::new(&format!("{name}.txt")).exists(), "half of it is no view");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
