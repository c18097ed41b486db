//! Processes of a bench: they do what they are told, say why they failed, and all end.

mod failures;
mod usage;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::until;
use bench::scenario::Endpoint;
use bench::target::{CommandExit, SupervisedCommand, Supervisor, wait_until_ready};
use tempfile::TempDir;

/// Set for a copy of this program that starts a target and then ends in this way.
const HOLD: &str = "TLSDASH_TEST_HOLD";
/// A child that has forked twice into a session of its own, and one that ignores SIGTERM; both outlive the shell.
const LEAKING: &str = "setsid sh -c 'sleep 1000 & echo $! > leaked' & \
                       sh -c 'trap \"\" TERM; echo $$ > stubborn; exec sleep 1000' &";

fn tlsdash() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tlsdash"))
}

fn command(folder: &TempDir, argv: &[&str]) -> SupervisedCommand {
    let argv = argv.iter().map(ToString::to_string).collect();
    let grace = Duration::from_secs(2);
    let output = folder.path().join("output");
    SupervisedCommand { grace, ..SupervisedCommand::new(argv, folder.path().to_owned(), output) }
}

fn shell(folder: &TempDir, script: &str) -> Supervisor {
    Supervisor::start(tlsdash(), &command(folder, &["sh", "-c", script])).unwrap()
}

/// The process id that a script has written.
fn pid_in(path: &Path) -> u32 {
    let mut pid = None;
    until("a script has written a process id", || {
        pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    pid.unwrap()
}

/// Whether a process of this id lives; a zombie has ended.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Starts the built-in upstream as a target; returns where it listens too.
fn upstream(folder: &TempDir) -> (Supervisor, PathBuf) {
    let path = folder.path().join("app.sock");
    let program = tlsdash().display().to_string();
    let argv = [&program, "bench-upstream", "--unix", &path.display().to_string(), "--tcp", "0"];
    let mut supervisor = Supervisor::start(tlsdash(), &command(folder, &argv)).unwrap();
    wait_until_ready(&mut supervisor, &Endpoint::Unix(path.clone()), crate::common::PATIENCE, &|| false)
        .unwrap();
    (supervisor, path)
}

/// Also what a copy of this program runs that is ended by force, after it has said which processes there are.
#[test]
fn a_target_is_ready_and_ends_when_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (supervisor, path) = upstream(&folder);
    let leaking = shell(&folder, &format!("{LEAKING} exec sleep 1000"));
    let [leaked, stubborn] = ["leaked", "stubborn"].map(|name| pid_in(&folder.path().join(name)));
    let tree = leaking.tree().unwrap();
    let pids = [supervisor.pid(), leaking.pid(), leaked, stubborn];
    assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    assert!(pids[1..].iter().all(|pid| tree.pids().contains(pid)), "{pids:?} of {:?}", tree.pids());
    if let Ok(how) = std::env::var(HOLD) {
        println!("\npids {}", pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        assert_ne!(how, "panic");
        std::thread::sleep(crate::common::PATIENCE);
    }
    assert_eq!(supervisor.stop().exit, Some(CommandExit::Signal(15)));
    assert!(!Endpoint::Unix(path).is_listened_on());
    let info = leaking.stop();
    assert!(info.killed >= 1, "{info:?}");
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
}

/// Runs a copy of this program until it holds targets; then `end` ends it.
fn all_end_with_bench(how: &str, end: impl FnOnce(u32)) {
    let mut copy = Command::new(std::env::current_exe().unwrap());
    copy.args([
        "--exact",
        "alone::bench_targets::a_target_is_ready_and_ends_when_it_is_stopped",
        "--nocapture",
    ])
    .env(HOLD, how);
    let mut copy = copy.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(copy.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("pids ")).expect("it says which processes there are");
    let pids: Vec<u32> = line.split(' ').skip(1).map(|pid| pid.parse().unwrap()).collect();
    end(copy.id());
    copy.wait().unwrap();
    until("all have ended", || !pids.iter().any(|pid| lives(*pid)));
}

#[test]
fn nothing_is_left_when_bench_is_killed() {
    all_end_with_bench("kill", |pid| crate::common::send(rustix::process::Signal::KILL, pid));
}

#[test]
fn nothing_is_left_when_bench_panics() {
    all_end_with_bench("panic", |_| {});
}

#[test]
fn nothing_is_left_when_bench_is_interrupted() {
    all_end_with_bench("interrupt", |pid| crate::common::send(rustix::process::Signal::INT, pid));
}

#[test]
fn what_a_command_leaves_behind_ends_when_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = shell(&folder, &format!("{LEAKING} sleep 0.3; exit 3"));
    let pids = ["leaked", "stubborn"].map(|name| pid_in(&folder.path().join(name)));
    let info = supervisor.wait_until(Instant::now() + crate::common::PATIENCE).unwrap();
    assert_eq!(info.exit, Some(CommandExit::Code(3)));
    assert!(info.left_behind >= 2 && info.killed >= 1, "{info:?}");
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
}

#[test]
fn a_command_that_is_slow_to_stop_has_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = shell(
        &folder,
        "trap 'sleep 0.3; echo stopped; exit 7' TERM; echo $$ > pid; while :; do sleep 0.05; done",
    );
    pid_in(&folder.path().join("pid"));
    let info = supervisor.stop();
    assert_eq!((info.exit, info.killed), (Some(CommandExit::Code(7)), 0));
    // The shell may say before that the sleep was terminated.
    assert!(fs::read_to_string(folder.path().join("output")).unwrap().ends_with("stopped\n"));
}

#[test]
fn a_command_gets_its_limits_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let script = "ulimit -n; ulimit -Hn; grep Cpus_allowed_list /proc/self/status; echo $WORD >&2";
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let core = (0..rustix::thread::CpuSet::MAX_CPU).find(|&core| cores.is_set(core)).unwrap();
    let command = SupervisedCommand {
        environment: [("WORD".to_owned(), "said".to_owned())].into(),
        stdout: Some(folder.path().join("stdout")),
        cpus: Some(core.to_string()),
        descriptors_max: Some(200),
        ..command(&folder, &["sh", "-c", script])
    };
    let mut supervisor = Supervisor::start(tlsdash(), &command).unwrap();
    supervisor.wait_until(Instant::now() + crate::common::PATIENCE).unwrap();
    let printed = fs::read_to_string(folder.path().join("stdout")).unwrap();
    assert_eq!(printed, format!("200\n200\nCpus_allowed_list:\t{core}\n"));
    assert_eq!(supervisor.output_tail(), "said");
}
