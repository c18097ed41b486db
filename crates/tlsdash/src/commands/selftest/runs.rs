//! Runs of the program as a user starts it, whose counts must agree.
//!
//! Generator and proxy count on their own, and both summaries are read from a journal: by the run itself, and from the
//! file afterwards.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::Check;
use crate::service::signals;

/// A load that a small machine bears, with full and resumed handshakes.
const LOAD: &str = "rate=200,connections=8,source-addresses=4,keep-alive=5,resume=80%";
/// How long a command may take, besides the time for which it was asked to run.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);

/// What generator and proxy must agree on in either mode, and in HTTP mode, as paths in the summary.
const EQUAL: [(&str, &str); 5] = [
    ("/proxy/handshakes/full", "/load/handshakes/full"),
    ("/proxy/handshakes/resumed", "/load/handshakes/resumed"),
    ("/proxy/connections/accepted", "/load/connections"),
    ("/load/requests/answered", "/load/requests/ok"),
    ("/journal/made", "/journal/read"),
];
const EQUAL_IN_TCP_MODE: [(&str, &str); 2] =
    [("/proxy/bytes/in", "/load/bytes/in"), ("/proxy/bytes/out", "/load/bytes/out")];
const EQUAL_IN_HTTP_MODE: [(&str, &str); 1] = [("/proxy/http/requests/total", "/load/requests/answered")];
/// Columns of the clients, whose sums are counts of the proxy.
const SUMS: [(&str, &str); 4] = [
    ("handshakes_full", "/proxy/handshakes/full"),
    ("handshakes_resumed", "/proxy/handshakes/resumed"),
    ("bytes_in", "/proxy/bytes/in"),
    ("bytes_out", "/proxy/bytes/out"),
];
/// Parts of the summary that a reader of the file must find again.
const READ_BACK: [&str; 4] = ["run", "proxy", "load", "clients"];

/// Makes the checks in a folder that is removed at the end.
///
/// # Errors
/// When it was interrupted, or `add` fails. What does not work is a check.
pub(super) fn checks(
    length: Duration,
    add: &mut impl FnMut(Check) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let interrupted = signals::interruption()?;
    let folder = tempfile::Builder::new().prefix("tlsdash-").tempdir();
    let folder = match folder.context("cannot make a temporary folder; set TMPDIR") {
        Ok(folder) => folder,
        Err(error) => return add(Check::of_work("files", Err(error))),
    };
    let runner = Runner { folder: folder.path(), interrupted };
    let mut check = |name, worked| {
        ensure!(!runner.interrupted.load(Ordering::Relaxed), "interrupted");
        add(Check::of_work(name, worked))
    };
    let tcp = runner.demo("tcp", length);
    let tcp_summary = tcp.as_ref().ok().cloned();
    check("TCP mode", tcp.and_then(|summary| agreement(&summary, &EQUAL_IN_TCP_MODE)))?;
    let http = runner.demo("http", length);
    check("HTTP mode", http.and_then(|summary| agreement(&summary, &EQUAL_IN_HTTP_MODE)))?;
    // Without a run there is nothing to read.
    if let Some(summary) = tcp_summary {
        check("journal file", runner.read_back("tcp", &summary))?;
        check("report", runner.report("tcp", &summary))?;
    }
    Ok(())
}

/// Runs commands of this program, with their files in a folder.
struct Runner<'a> {
    folder: &'a Path,
    interrupted: Arc<AtomicBool>,
}

impl Runner<'_> {
    /// A run of certificate, upstream, proxy and load; its summary.
    fn demo(&self, mode: &str, length: Duration) -> anyhow::Result<Value> {
        let length_ms = format!("{}ms", length.as_millis());
        let journal = format!("file:{}", self.journal(mode).display());
        // Two workers share a port (SO_REUSEPORT), also on one core.
        let args = [
            "demo",
            "--headless",
            "--mode",
            mode,
            "--load",
            LOAD,
            "--workers",
            "2",
            "--duration",
            &length_ms,
            "--journal",
            &journal,
            "--format",
            "json",
        ];
        json(&self.run(&args, length + PATIENCE)?)
    }

    /// Reads the file of a run, and compares what it holds with the run's own summary.
    fn read_back(&self, mode: &str, summary: &Value) -> anyhow::Result<String> {
        let journal = self.journal(mode);
        let args = [
            OsStr::new("watch"),
            journal.as_os_str(),
            OsStr::new("--headless"),
            OsStr::new("--format"),
            OsStr::new("json"),
        ];
        let read = json(&self.run(&args, PATIENCE)?)?;
        for part in READ_BACK {
            ensure!(read[part] == summary[part], "{part} in the file is not that of the run");
        }
        let bytes = fs::metadata(&journal)?.len();
        Ok(format!("{} records in {bytes} bytes hold what the run counted", summary["journal"]["made"]))
    }

    /// Makes a page of a run.
    fn report(&self, mode: &str, summary: &Value) -> anyhow::Result<String> {
        let (journal, page) = (self.journal(mode), self.folder.join("report.html"));
        let args = [OsStr::new("report"), journal.as_os_str(), OsStr::new("--html"), page.as_os_str()];
        self.run(&args, PATIENCE)?;
        let text = fs::read_to_string(&page).context("cannot read the page")?;
        let run = summary["run"].as_str().context("the summary names no run")?;
        ensure!(text.contains(run) && text.trim_end().ends_with("</html>"), "the page is not whole");
        Ok(format!("a page of {} bytes", text.len()))
    }

    fn journal(&self, mode: &str) -> PathBuf {
        self.folder.join(format!("{mode}.journal"))
    }

    /// Runs a command to its end. Gives what it printed.
    ///
    /// # Errors
    /// With the last line that it said, if it failed; if it takes too long or the user interrupts, when it is killed.
    fn run(&self, args: &[impl AsRef<OsStr>], patience: Duration) -> anyhow::Result<String> {
        let [printed, said] = ["printed", "said"].map(|name| self.folder.join(name));
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let child = Command::new(program)
            .args(args)
            // What a killed command leaves behind is removed with the rest.
            .env("TMPDIR", self.folder)
            .env("STATE_DIRECTORY", self.folder)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(File::create(&printed)?)
            .stderr(File::create(&said)?)
            .spawn()
            .context("cannot start this program again")?;
        let status = self.wait(child, patience)?;
        if !status.success() {
            let said = fs::read_to_string(&said)?;
            let last = said.lines().last().unwrap_or_default().trim_start_matches("tlsdash: ").to_owned();
            bail!("{} ended with {status}: {last}", args[0].as_ref().display());
        }
        Ok(fs::read_to_string(&printed)?)
    }

    fn wait(&self, mut child: Child, patience: Duration) -> anyhow::Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let is_interrupted = self.interrupted.load(Ordering::Relaxed);
            if is_interrupted || begun.elapsed() > patience {
                child.kill()?;
                child.wait()?;
                ensure!(!is_interrupted, "interrupted");
                bail!("it did not end within {} s", patience.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

fn json(text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).context("what it printed is no JSON")
}

/// Compares the counts of a summary with each other. Gives them in words.
///
/// # Errors
/// Names the first two that differ, or are 0.
fn agreement(summary: &Value, of_mode: &[(&str, &str)]) -> anyhow::Result<String> {
    let count = |path: &str| {
        let count = summary.pointer(path).and_then(Value::as_u64);
        count.filter(|count| *count > 0).with_context(|| format!("{path} of the summary counts nothing"))
    };
    let [requests, full, resumed] =
        ["/load/requests/ok", "/load/handshakes/full", "/load/handshakes/resumed"].map(count);
    // An event of a load has an error as its example.
    let requests =
        requests.with_context(|| format!("no request succeeded: {}", summary["load"]["events"]))?;
    for (a, b) in EQUAL.iter().chain(of_mode) {
        let (of_a, of_b) = (count(a)?, count(b)?);
        ensure!(of_a == of_b, "{a} is {of_a}, and {b} is {of_b}");
    }
    let clients = summary["clients"].as_array().context("the summary has no clients")?;
    for (column, path) in SUMS {
        let sum: u64 = clients.iter().filter_map(|client| client[column].as_u64()).sum();
        let total = count(path)?;
        ensure!(sum == total, "{column} of the clients adds up to {sum}, and {path} is {total}");
    }
    let (full, resumed) = (full?, resumed?);
    Ok(format!(
        "{requests} requests, {full} full and {resumed} resumed handshakes; load, proxy and journal agree"
    ))
}
