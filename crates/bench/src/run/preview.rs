//! The plan of a run, without running it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use telemetry::quantity;

use super::missing_program::missing_program;
use super::plan::RunPlan;
use super::planned;
use crate::scenario::{BenchCase, Question, Server};

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
        let how = match &target.server {
            Server::Commands(servers) => {
                let commands = servers.iter().map(|server| server.command.join(" "));
                commands.collect::<Vec<_>>().join("\n    behind it: ")
            }
            Server::Address(server) => format!("runs already: {}", server.url),
        };
        let baseline = if target.name == scenario.baseline { " (baseline)" } else { "" };
        let _ = writeln!(text, "  {}{baseline}\n    {how}", target.name);
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
        let flags = case.load_flags().join(" ");
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
    let cells = plan.cells().count();
    let _ = writeln!(text, "\n{cells} cells in {} rounds, about {}", scenario.rounds, minutes(length(plan)));
    text
}

/// How long a plan takes, about.
fn length(plan: &RunPlan) -> Duration {
    let needs_search = |case: &BenchCase| case.question == Question::Cost && case.flag("rate").is_none();
    let searches = plan.scenario.cells().filter(|(_, case)| needs_search(case)).count() as u32;
    let cells: Duration = plan.cells().map(|cell| planned(cell.case)).sum();
    cells + SEARCH * searches
}

fn minutes(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}
