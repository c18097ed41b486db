//! Keeps docs/journal-schema.md true: its tables are made of the field table, and this test compares them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::PathBuf;

use records::kinds::Body;
use records::metrics::Field;
use records::wire::field::common_fields;

const BEGIN: &str = "<!-- fields: made by `just schema`, checked by the tests -->\n";
const END: &str = "<!-- end of fields -->\n";

fn table(fields: &[Field], out: &mut String) {
    out.push_str("| field | unit | example | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let Field { name, unit, example, meaning } = field;
        let example = example.replace('|', "\\|");
        writeln!(out, "| `{name}` | {unit} | `{example}` | {meaning} |").unwrap();
    }
    out.push('\n');
}

fn rendered() -> String {
    let mut out = String::from("## On every record\n\n");
    table(&common_fields(), &mut out);
    for kind in Body::KINDS {
        writeln!(out, "## `TLSDASH_KIND={}`\n\n{}", kind.word, kind.meaning).unwrap();
        writeln!(out, "`MESSAGE_ID={}`\n", kind.message_id).unwrap();
        table(&Body::fields(kind.word), &mut out);
    }
    out
}

#[test]
fn the_document_lists_every_field() {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "journal-schema.md"].iter().collect();
    let document = std::fs::read_to_string(&path).expect("docs/journal-schema.md is there");
    let (head, rest) = document.split_once(BEGIN).expect("the document marks where the fields begin");
    let (fields, tail) = rest.split_once(END).expect("the document marks where the fields end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}\n{}{END}{tail}", rendered())).unwrap();
        return;
    }
    assert_eq!(fields.trim(), rendered().trim(), "docs/journal-schema.md is out of date: run `just schema`");
}

#[test]
fn names_are_such_as_the_journal_takes_and_each_stands_once_a_kind() {
    for kind in Body::KINDS {
        let mut seen = std::collections::HashSet::new();
        for field in common_fields().into_iter().chain(Body::fields(kind.word)) {
            let ok = field.name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            assert!(ok && field.name.len() <= 64, "{}", field.name);
            assert!(seen.insert(field.name.clone()), "{} stands twice in {}", field.name, kind.word);
            assert!(!field.meaning.is_empty() && !field.example.is_empty(), "{}", field.name);
        }
    }
}

#[test]
fn every_kind_has_a_message_id_of_its_own() {
    let ids: std::collections::HashSet<_> = Body::KINDS.iter().map(|kind| kind.message_id).collect();
    assert_eq!(ids.len(), Body::KINDS.len());
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
}
