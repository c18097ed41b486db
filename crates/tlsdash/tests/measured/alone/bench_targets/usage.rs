//! What the meters say of processes, beside what the kernel says once these have ended.

use std::fs;
use std::process::Command;
use std::time::Duration;

use bench::target::{MachineMeter, SampleTimes, TimeSpan, UsageMeter};
use records::kinds::Timestamps;

use super::shell;
use crate::common::until;

/// Waits for a line in the fifo, uses CPU in each way that a tree can, and stays.
const BURNING: &str = "
    user() { i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }
    system() { dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null; }
    read _ < go
    user
    system
    for _ in 1 2 3; do (user) & (system) & wait; done
    setsid sh -c '(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo > orphan) &'
    while [ ! -e orphan ]; do sleep 0.05; done
    echo > done
    exec sleep 1000";

/// A tick of user and of system time for each process that accounts for ended children, here the shell and the
/// supervisor, and what ends the command.
const TOLERANCE: Duration = Duration::from_millis(2 * 2 * 10 + 10);

#[test]
fn usage_of_living_and_ended_processes_agrees_with_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("go")).status().unwrap().success());
    let supervisor = shell(&folder, BURNING);
    let meter = UsageMeter::start(supervisor.tree().unwrap(), SampleTimes::Periodic).unwrap();
    let machine = MachineMeter::start(SampleTimes::Periodic).unwrap();
    let from_us = Timestamps::now().monotonic_us;
    fs::write(folder.path().join("go"), "\n").unwrap();
    until("all of it has ended", || folder.path().join("done").exists());
    let to_us = Timestamps::now().monotonic_us;
    let span = [TimeSpan { from_us, to_us }];
    let usage = meter.usage(&span);
    let around = machine.usage(&span, &[usage], meter.run_queue_delay(&span));
    let info = supervisor.stop();
    println!("{usage:?}\n{around:?}\n{info:?}");
    let near = |measured_us: u64, true_us: u64| measured_us.abs_diff(true_us) <= TOLERANCE.as_micros() as u64;
    assert!(near(usage.cpu_us(), info.user_us + info.system_us), "{usage:?} is not near {info:?}");
    assert!(near(usage.user_us, info.user_us) && near(usage.system_us, info.system_us), "{usage:?} {info:?}");
    assert!(usage.user_us > 100_000 && usage.system_us > 100_000, "{usage:?}");
    assert!(usage.rss_at_rest > 100_000 && usage.rss_peak >= usage.rss_at_rest, "{usage:?}");
    assert!(usage.pss_at_rest > 0 && usage.pss_at_rest <= usage.rss_at_rest, "{usage:?}");
    assert!(usage.threads_max >= 1 && usage.descriptors_max >= 3 && usage.context_switches > 0, "{usage:?}");
    assert_eq!(usage.wall_us, to_us - from_us);
    assert!((0.0..=1.0).contains(&around.other) && (0.0..=1.0).contains(&around.steal), "{around:?}");
    assert!(around.run_queue_delay.is_none_or(|delay| delay > 0.0), "{around:?}");
}

#[test]
fn the_supervisor_itself_uses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = shell(&folder, "exec sleep 1000");
    until("it has become sleep", || {
        let name = fs::read_to_string(format!("/proc/{}/comm", supervisor.pid()));
        name.is_ok_and(|name| name.trim() == "sleep")
    });
    let meter = UsageMeter::start(supervisor.tree().unwrap(), SampleTimes::Periodic).unwrap();
    let now_us = Timestamps::now().monotonic_us;
    let usage = meter.usage(&[TimeSpan { from_us: now_us, to_us: now_us + 1_000_000 }]);
    // The supervisor has several threads and several MB.
    assert_eq!(usage.threads_max, 1, "{usage:?}");
    assert!(usage.rss_peak < 4 << 20, "{usage:?}");
}
