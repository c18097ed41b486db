//! Help: `-h` has a line for each flag, `--help` and the manual all that there is to say.
//!
//! A flag has one text. Its summary is as many of the clauses in front as fit the line, so the first clause must be short.
//! Flags stand in groups, by their `help_heading`.

use clap::{Arg, Command};

/// Groups of flags that several commands have.
pub(crate) const RECORDS: &str = "Records";
pub(crate) const DASHBOARD: &str = "Dashboard and summary";
pub(crate) const PROCESS: &str = "Process and control";
pub(crate) const METRICS: &str = "Alerts and metrics";
pub(crate) const EXPERIMENTS: &str = "Load and experiments";
pub(crate) const RUNS: &str = "Which runs";
pub(crate) const CERTIFICATES: &str = "Certificates";

/// Columns of a terminal, at least.
const COLUMNS: usize = 80;
/// Columns of a line that neither flag nor summary takes: the indent, the room for a short flag, and the gap.
const MARGINS: usize = 8;
/// The same of a line about a command, but for the room for a short flag.
const COMMAND_MARGINS: usize = 4;
/// What a clause may end with.
const ENDS: [&str; 5] = ["; ", ": ", ". ", ", such as ", " ["];

/// Gives a command's flags, the commands below it and their flags summaries.
pub(crate) fn with_summaries(command: Command) -> Command {
    let flags: Vec<_> = command.get_arguments().map(|arg| (heading(arg), length(arg))).collect();
    let names = command.get_subcommands().map(|below| below.get_name().len());
    let room = COLUMNS.saturating_sub(COMMAND_MARGINS + names.max().unwrap_or(0));
    let command = command.mut_subcommands(|below| {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        let whole = below.get_long_about().map_or_else(|| about.clone(), ToString::to_string);
        with_summaries(below.about(summary(&about, room).to_owned()).long_about(whole))
    });
    command.mut_args(|arg| {
        let of_group = flags.iter().filter(|(name, _)| *name == heading(&arg)).map(|(_, length)| *length);
        let room = COLUMNS.saturating_sub(MARGINS + of_group.max().unwrap_or(0));
        let text = text(&arg);
        let summary = summary(&text, room).to_owned();
        // The text has them.
        let hides = arg.get_action().takes_values();
        arg.help(summary).long_help(text).hide_default_value(hides).hide_possible_values(hides)
    })
}

fn heading(arg: &Arg) -> Option<String> {
    arg.get_help_heading().map(str::to_owned)
}

/// Columns of a flag and the name of its value.
fn length(arg: &Arg) -> usize {
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.and_then(|names| names.first()).map_or(0, |name| name.len() + " <>".len());
    arg.get_long().map_or(0, |long| "--".len() + long.len()) + value
}

/// All that there is to say, with the values that it may have, and the default.
fn text(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return text;
    }
    let values: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    // Most texts say what each value does.
    if !values.iter().all(|value| text.contains(&**value)) {
        text = format!("{text}: {}", values.join(" or "));
    }
    if let Some(default) = arg.get_default_values().first().filter(|_| !arg.is_hide_default_value_set()) {
        text = format!("{text} [default: {}]", default.display());
    }
    text
}

/// The clauses in front that fit into `room` columns, or else the first one.
fn summary(text: &str, room: usize) -> &str {
    let is_whole = |clauses: &str| {
        ["()", "[]"].iter().all(|pair| {
            let (open, close) = pair.split_at(1);
            clauses.matches(open).count() == clauses.matches(close).count()
        })
    };
    let ends = ENDS.iter().flat_map(|end| text.match_indices(end)).map(|(at, _)| at).chain([text.len()]);
    let mut clauses: Vec<_> = ends.map(|end| &text[..end]).filter(|clauses| is_whole(clauses)).collect();
    clauses.sort_by_key(|clauses| clauses.len());
    let fitting = clauses.iter().rev().find(|clauses| clauses.chars().count() <= room);
    fitting.or_else(|| clauses.first()).unwrap_or(&text)
}
