//! docs/options.md, which `just schema` writes, and tests of other documents that name options.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::HTTP_MODE;
use crate::cli::ProxyArgs;

/// Renders docs/options.md: a table with a line for each option of the proxy.
fn options_document() -> String {
    let mut text = String::from(
        "# Options of the proxy\n\nEach is a flag and a word of the configuration file; `[[route]]` and `[[pass]]` tables are those of a \
         file. A time is a number with `ns`, `us`, `ms`, `s`, `m`, `h` or `d`, else in \
         seconds; a rate without `/s` is a second's. Made by `just schema`, checked by the tests.\n",
    );
    let command = ProxyArgs::command();
    let flags: Vec<_> = command.get_arguments().filter(|argument| argument.get_long().is_some()).collect();
    let mut groups: Vec<_> = flags.iter().map(|flag| flag.get_help_heading()).collect();
    let mut seen = HashSet::new();
    groups.retain(|group| seen.insert(*group));
    for group in groups {
        let flags: Vec<_> = flags.iter().copied().filter(|flag| flag.get_help_heading() == group).collect();
        let heading = group.unwrap_or("The configuration file");
        let about = if group == Some(HTTP_MODE) {
            "They go with `--mode http` only ([http.md](http.md)).\n\n"
        } else {
            ""
        };
        let _ = write!(
            text,
            "\n## {heading}\n\n{about}| option | value | meaning |\n|---|---|---|\n{}",
            rows(&flags)
        );
    }
    text
}

fn rows(arguments: &[&clap::Arg]) -> String {
    let mut text = String::new();
    for argument in arguments {
        let default = argument.get_default_values().first().filter(|_| !argument.is_hide_default_value_set());
        let default = default.filter(|_| argument.get_action().takes_values());
        let default = default.map_or_else(String::new, |value| format!(" [default: {}]", value.display()));
        let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
        let value = value.map_or_else(String::new, |names| format!("`{}`", names.join(" ")));
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let meaning = format!("{help}{default}").replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(text, "| `--{}` | {value} | {meaning} |", argument.get_long().unwrap());
    }
    text
}

#[test]
fn the_document_lists_every_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, options_document()).unwrap();
        return;
    }
    let document = std::fs::read_to_string(path).unwrap();
    assert_eq!(document, options_document(), "docs/options.md is out of date: run `just schema`");
}

#[test]
fn every_flag_that_the_operators_guide_names_exists() {
    let guide = [
        include_str!("../../../../../docs/proxy.md"),
        include_str!("../../../../../docs/upstreams.md"),
        include_str!("../../../../../packaging/tlsdash.service"),
    ]
    .concat();
    let known: Vec<_> =
        ProxyArgs::command().get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
    let flags = guide
        .split("--")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default());
    for flag in flags.filter(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase())) {
        assert!(known.iter().any(|word| word == flag), "--{flag} is not a flag");
    }
}
