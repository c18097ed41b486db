//! Measures the CPU time of a frame of the dashboard: `just bench-frame`.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::time::Duration;

use benchmarks::frame::FrameBench;
use rustix::time::{ClockId, clock_gettime};

const FRAMES: u64 = 240;

fn main() {
    let mut bench = FrameBench::start();
    let (mut drawing, mut taking_in, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..FRAMES {
        let records = bench.next_second();
        let before = cpu();
        bench.take(records);
        let between = cpu();
        bytes += bench.draw_frame();
        drawing.push(cpu().saturating_sub(between));
        taking_in.push(between.saturating_sub(before));
    }
    report("CPU of a frame", &mut drawing);
    report("of taking in a second's records before it", &mut taking_in);
    println!("{:<48}{:>8} bytes", "written to the terminal for a frame", bytes / FRAMES);
    let unchanged = bench.draw_frame();
    println!("{:<48}{unchanged:>8} bytes", "the same if nothing has changed");
}

/// Returns the CPU time of this thread.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!("{what:<48}{:>8.0} us median, {:.0} us fastest, {:.0} us p90", at(0.5), at(0.0), at(0.9));
}
