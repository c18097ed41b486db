//! Keeps docs/figures.md true: its tables are made of the catalogue, and this test compares them.

use std::fmt::Write;
use std::path::PathBuf;

use model::figures::{Figure, FigureSide, FigureUnit};
use records::metrics::LatencyClass;

const BEGIN: &str = "<!-- figures: made by `just schema`, checked by the tests -->\n";
const END: &str = "<!-- end of figures -->\n";

const SIDES: [(FigureSide, &str); 7] = [
    (
        FigureSide::Proxy,
        "Numbers of the proxy\n\nFrom the run's first record to its last. Names may begin with `proxy.`.",
    ),
    (FigureSide::Http, "Numbers of HTTP mode\n\nOnly with `--mode http`. Names may begin with `proxy.`."),
    (
        FigureSide::Load,
        "Numbers of the load\n\nLatencies, bytes, and requests except `requests.scheduled`, are without the warm-up; connections, handshakes and resumptions include it. Names may begin with `load.`.",
    ),
    (FigureSide::Run, "Numbers of the run"),
    (FigureSide::Process, "CPU time of the process\n\nThreads are grouped by name."),
    (
        FigureSide::Observed,
        "Numbers of an observed process\n\nOnly with `--observe-pid`, or `observe` with `--pid` or `--unit`.",
    ),
    (FigureSide::Journal, "Numbers of the journal\n\nOnly if the run was read from a journal."),
];

fn unit(figure: &Figure) -> &'static str {
    match figure.unit() {
        FigureUnit::Count => "count",
        FigureUnit::Ratio => "share, 0 to 1",
        unit => unit.symbol(),
    }
}

fn classes(side: &str, out: &mut String) {
    out.push_str("| class | on the screen | a sample starts | and ends |\n|---|---|---|---|\n");
    for class in LatencyClass::all().filter(|class| class.side() == side) {
        let names = class.names();
        let note = if names.note.is_empty() { String::new() } else { format!(" ({})", names.note) };
        writeln!(out, "| `{}` | {}{note} | {} | {} |", names.figure, names.title, names.start, names.end)
            .unwrap();
    }
    out.push('\n');
}

fn table(figures: impl Iterator<Item = Figure>, out: &mut String) {
    out.push_str("| figure | unit | what it is |\n|---|---|---|\n");
    for figure in figures {
        writeln!(out, "| `{}` | {} | {} |", figure.short_name(), unit(&figure), figure.definition()).unwrap();
    }
    out.push('\n');
}

fn rendered() -> String {
    let mut out = String::from("## Latencies that the proxy times\n\n");
    classes("proxy", &mut out);
    out.push_str("## Latencies that the load times\n\n");
    classes("load", &mut out);
    out.push_str("## One amount divided by another\n\nFor several blocks or runs, the sums are divided. `--ab` and `compare` take these figures, means and percentiles.\n\n");
    table(Figure::quotients(), &mut out);
    for (side, heading) in SIDES {
        write!(out, "## {heading}\n\n").unwrap();
        table(Figure::scalars().filter(|figure| figure.side() == side), &mut out);
    }
    out.push_str(
        "## Figures of one upstream\n\nThe name of the upstream, as it was configured, stands in quotes. Latencies have every \
         statistic.\n\n",
    );
    table(Figure::of_upstream("unix:/run/app.sock"), &mut out);
    out.push_str(
        "## Figures of one route\n\nOnly with `--mode http`. The name of the route, host and path, stands in quotes. Latencies \
         have every statistic. `other` sums all routes after the 50th.\n\n",
    );
    table(Figure::of_route("/api"), &mut out);
    out
}

#[test]
fn the_document_lists_every_figure() {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "figures.md"].iter().collect();
    let document = std::fs::read_to_string(&path).expect("docs/figures.md is there");
    let (head, rest) = document.split_once(BEGIN).expect("the document marks where the figures begin");
    let (figures, tail) = rest.split_once(END).expect("the document marks where the figures end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}\n{}{END}{tail}", rendered())).unwrap();
        return;
    }
    assert_eq!(figures.trim(), rendered().trim(), "docs/figures.md is out of date: run `just schema`");
}
