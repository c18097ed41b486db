//! `tlsdash bench` from the outside, with real programs.
//!
//! | module | purpose |
//! |---|---|
//! | `runs` | whole runs: figures, files, exit codes, what the documents show |
//! | `failures` | what goes wrong names its line and quotes the target, and nothing is left running |
//! | `interruption` | Ctrl-C, SIGKILL, and going on |
//! | `against` | comparisons without a scenario |
//! | `access_logs` | figures beside the targets' own logs and `pidstat` |
//! | `other_users` | targets whose workers run as another user |

mod access_logs;
mod against;
mod failures;
mod interruption;
mod other_users;
mod runs;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::tlsdash;
use serde_json::Value;
use tempfile::TempDir;

/// The case of these tests: half a second of load at a low rate, which every machine sustains.
const CASE: &str = r#"
[[case]]
name = "small"
path = "/bytes/13"
connections = 2
rate = 100
duration = "700ms"
warmup = "200ms"
"#;

/// A target that this program serves.
const TLSDASH: &str = "[[target]]\nname = \"good\"\ntemplate = \"tlsdash-tcp\"\n";

/// A folder with a scenario of these targets and [`CASE`].
fn scenario(rounds: u32, targets: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("title = \"a test\"\nrounds = {rounds}\n{targets}{CASE}");
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    folder
}

/// Runs the scenario of a folder; `args` are one string.
fn bench(folder: &Path, args: &str) -> Output {
    bench_command(folder, args).output().unwrap()
}

fn bench_command(folder: &Path, args: &str) -> Command {
    let mut command = tlsdash(folder);
    let args = args.split(' ').filter(|arg| !arg.is_empty());
    command.current_dir(folder).args(["bench", "scenario.toml"]).args(args);
    command
}

/// A figure of a cell.
fn figure(cell: &Value, name: &str) -> f64 {
    cell["figures"][name].as_f64().unwrap_or_default()
}

/// A target that a shell runs. It is the program that the supervisor starts, so that it gets the signals.
fn shell_target(name: &str, script: &str) -> String {
    format!(
        "[[target]]\nname = \"{name}\"\ntls = false\nupstream = \"tcp\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
    )
}

/// The cells in a folder of results.
fn cells(saved: &Path) -> Vec<Value> {
    let text = fs::read_to_string(saved.join("cells.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Processes that a test of this folder started, by their state directory, which all of them inherit.
fn processes_of(folder: &Path) -> Vec<String> {
    let mark = format!("STATE_DIRECTORY={}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    found
}
