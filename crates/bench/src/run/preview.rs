//! The plan of a run, without running it, and the commands that it runs.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use records::text::quantity;

use super::missing_program::missing_program;
use super::plan::RunPlan;
use crate::output::wording::minutes;
use crate::scenario::{BenchCase, BenchTarget, CommandServer, Question, Server};

/// The tries of a search for a rate, with start and check of each target: one in a closed loop, one at the rate.
const SEARCH: Duration = Duration::from_secs(5);

/// Describes the cells of a plan, the commands, and how long it takes.
pub fn preview(plan: &RunPlan, tlsdash: &Path) -> String {
    let scenario = &plan.scenario;
    let mut text = format!("{}: {}\nseed {}\n", scenario.name, scenario.title, plan.seed);
    for change in &plan.changes {
        let _ = writeln!(text, "{change}");
    }
    text.push_str("\ntargets, each started afresh for each cell:\n");
    for target in &scenario.targets {
        let baseline = if target.name == scenario.baseline { " (baseline)" } else { "" };
        let _ = writeln!(text, "  {}{baseline}", target.name);
        for command in commands(target) {
            let _ = writeln!(text, "    {command}");
        }
        if let Some(missing) = missing_program(target, tlsdash) {
            let _ = writeln!(text, "    missing: {missing}");
        }
    }
    text.push_str("\ncases, each a child:\n");
    for case in &scenario.cases {
        let question = match case.question {
            Question::Cost if case.flag("rate").is_none() => "cost, at a rate that is found first",
            Question::Cost => "cost",
            Question::Capacity => "capacity",
            Question::Load => "load",
        };
        let flags = quoted(&case.load_flags());
        let turns =
            case.turns.filter(|_| scenario.targets.iter().filter(|target| case.is_for(target)).count() > 1);
        let turns = turns.map_or_else(String::new, |turn| {
            format!(", in turns of {}", quantity::shown(turn.as_secs_f64(), "s"))
        });
        let only =
            if case.only.is_empty() { String::new() } else { format!(", only {}", case.only.join(", ")) };
        let _ = writeln!(
            text,
            "  {} ({question}{turns}{only})\n    tlsdash load URL{} {flags}",
            case.name, case.path
        );
    }
    text.push_str("\norder of the first round:\n");
    for cell in plan.cells().take_while(|cell| cell.round == 1) {
        let _ = writeln!(text, "  {}: {}", cell.case.name, cell.target.name);
    }
    let _ = writeln!(text, "\n{}", size(plan));
    text
}

/// How many cells a plan has, and how long they take.
pub fn size(plan: &RunPlan) -> String {
    let cells = plan.cells().count();
    format!("{cells} cells in {} rounds, about {}", plan.scenario.rounds, minutes(length(plan)))
}

/// What is started for a target, a line each, as a shell would read it. Placeholders stay.
pub fn commands(target: &BenchTarget) -> Vec<String> {
    let servers = match &target.server {
        Server::Commands(servers) => servers,
        Server::Address(server) => return vec![format!("runs already: {}", server.url)],
    };
    let of_server = |(index, server): (usize, &CommandServer)| {
        let variables =
            server.environment.iter().map(|(name, value)| format!("{name}={}", quoted_word(value)));
        let variables = variables.map(|variable| variable + " ").collect::<String>();
        let behind = if index > 0 { "behind it: " } else { "" };
        let prepare = (!server.prepare.is_empty())
            .then(|| format!("{behind}once, before it: {variables}{}", quoted(&server.prepare)));
        prepare.into_iter().chain([format!("{behind}{variables}{}", quoted(&server.command))])
    };
    servers.iter().enumerate().flat_map(of_server).collect()
}

/// Words as a shell would read them.
fn quoted(words: &[String]) -> String {
    words.iter().map(|word| quoted_word(word)).collect::<Vec<_>>().join(" ")
}

fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=%{}[]".contains(c);
    if word.chars().any(char::is_control) {
        let escaped = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        };
        format!("$'{}'", word.chars().map(escaped).collect::<String>())
    } else if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// How long a plan takes, about.
fn length(plan: &RunPlan) -> Duration {
    let needs_search = |case: &BenchCase| case.question == Question::Cost && case.flag("rate").is_none();
    let searches = plan.scenario.cells().filter(|(_, case)| needs_search(case)).count() as u32;
    let cells: Duration = plan.cells().map(|cell| cell.planned()).sum();
    cells + SEARCH * searches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_command_is_shown_as_a_shell_reads_it() {
        let text = r#"
[[target]]
name = "a"
command = ["sh", "-c", "echo it's $HOME", "", "\u001b[2J"]
prepare = ["make", "-C", "{build}", "a b"]
environment = { LD_PRELOAD = "/tmp/my lib.so" }
[[target]]
name = "b"
chain = ["tlsdash-http", "nginx-plain"]
[[case]]
name = "small"
path = "/bytes/13"
"#;
        let scenario = Scenario::parse("a.toml", text, &|_| Ok(())).unwrap();
        assert_eq!(
            commands(&scenario.targets[0]),
            [
                "once, before it: LD_PRELOAD='/tmp/my lib.so' make -C {build} 'a b'",
                r"LD_PRELOAD='/tmp/my lib.so' sh -c 'echo it'\''s $HOME' '' $'\u001b[2J'",
            ]
        );
        let chain = commands(&scenario.targets[1]);
        assert!(chain[0].starts_with("{tlsdash} --headless ") && chain[1].starts_with("behind it: nginx "));
    }
}
