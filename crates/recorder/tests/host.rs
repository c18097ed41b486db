//! Several runs in one process, each with a sampler of its own. Alone in its process, since other tests use CPU too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use recorder::host::HostSampler;
use records::metrics::CpuGroup;
use rustix::time::{ClockId, clock_gettime};

/// What a run whose thread is busy for so long is told to have used, in microseconds.
fn run(busy: Duration) -> u64 {
    let mut sampler = HostSampler::default();
    let ((tell, told), (go, wait)) = (channel(), channel::<()>());
    let work = move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
        wait.recv().unwrap();
        // So much CPU, however long a busy machine takes to give it.
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let end = used() + busy;
        while used() < end {
            std::hint::black_box(0);
        }
    };
    let thread = std::thread::Builder::new().name("upstream-9".into()).spawn(work).unwrap();
    let task = format!("/proc/self/task/{}", told.recv().unwrap());
    sampler.sample();
    go.send(()).unwrap();
    thread.join().unwrap();
    // The kernel lists a thread for a moment after its end, and a run counts what lives when it begins.
    let deadline = Instant::now() + Duration::from_secs(20);
    while Path::new(&task).exists() {
        assert!(Instant::now() < deadline, "{task} has ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    sampler.sample().cpu[CpuGroup::Upstream]
}

#[test]
fn usage_of_an_earlier_run_does_not_count_for_a_later_one() {
    let first_us = run(Duration::from_millis(200));
    let second_us = run(Duration::ZERO);
    assert!(first_us > 10_000, "only {first_us} us");
    assert!(second_us < first_us / 2, "{second_us} us after a run with {first_us} us");
}
