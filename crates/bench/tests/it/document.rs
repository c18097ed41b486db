//! `docs/bench.md` lists every figure of processes.

use bench::compare::USAGE_FIGURES;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench.md");

#[test]
fn the_document_lists_every_figure_of_processes() {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    for figure in &USAGE_FIGURES {
        let unit = if figure.unit.symbol().is_empty() { "count" } else { figure.unit.symbol() };
        let row = format!("| `{}` | {unit} | {} |", figure.name, figure.definition);
        assert!(text.contains(&row), "docs/bench.md lacks: {row}");
    }
}
