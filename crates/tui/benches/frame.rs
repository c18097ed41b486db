//! Measures the cost of a frame of the dashboard: 160 by 48 cells, everything changing, ten thousand clients
//! in the table.
//!
//! `just bench-frame`. A frame is the work after a second's records: computing the figures, laying out the
//! screen, comparing it with the former one and writing escape sequences to nowhere. CPU time is that of the
//! thread; with `--count`, callgrind counts the instructions of a frame instead.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]
#![allow(unreachable_pub, reason = "the made-up run is shared with the tests of the dashboard")]

#[path = "../tests/support/synthetic.rs"]
mod synthetic;

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use model::history::Update;
use rustix::time::{ClockId, clock_gettime};
use synthetic::SyntheticLoad;
use tui::{Colours, Glyphs, Offscreen, Options, Palette};

/// The clients in the table.
const CLIENTS: u64 = 10_000;
/// The seconds until each client has had a record.
const UNTIL_ALL_ARE_KNOWN: u64 = 260;
/// The frames under callgrind. One more follows without a change, at almost no cost.
const FRAMES_COUNTED: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let frames = match arguments.find(|argument| argument != "--bench").as_deref() {
        Some("--count") => return count(),
        // Run under callgrind by this program.
        Some("--counted") => FRAMES_COUNTED,
        _ => 240,
    };
    let mut stage = FrameBench::new();
    let (mut drawing, mut taking_in, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..frames {
        let news = stage.run.batch();
        let before = cpu();
        stage.screen.take(news);
        let between = cpu();
        bytes += one_frame(&mut stage.screen);
        drawing.push(cpu().saturating_sub(between));
        taking_in.push(between.saturating_sub(before));
    }
    report("CPU of a frame", &mut drawing);
    report("of taking in a second's records before it", &mut taking_in);
    println!("{:<48}{:>8} bytes", "written to the terminal for a frame", bytes / frames);
    let unchanged = one_frame(&mut stage.screen);
    println!("{:<48}{unchanged:>8} bytes", "the same if nothing has changed");
    Ok(())
}

/// A dashboard with all clients.
struct FrameBench {
    screen: Offscreen,
    run: SyntheticLoad,
}

impl FrameBench {
    fn new() -> Self {
        let mut options = Options::new(":8443 > unix:/tmp/app.sock", "file:/tmp/made-up.journal");
        options.glyphs = Glyphs::Unicode;
        options.palette = Palette::Coloured(Colours::SIXTEEN);
        let (mut screen, mut run) = (Offscreen::new(options, 160, 48), SyntheticLoad::crowd(CLIENTS));
        screen.take(Update::Batch(SyntheticLoad::live(vec![run.start()])));
        screen.take(Update::CaughtUp);
        for _ in 0..UNTIL_ALL_ARE_KNOWN {
            screen.take(run.batch());
        }
        screen.wait(Duration::ZERO);
        screen.draw();
        Self { screen, run }
    }
}

/// A function of its own, so that callgrind can select it by name.
#[inline(never)]
fn one_frame(screen: &mut Offscreen) -> u64 {
    std::hint::black_box(screen).draw()
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!("{what:<48}{:>8.0} us median, {:.0} us fastest, {:.0} us p90", at(0.5), at(0.0), at(0.9));
}

/// Runs this program under callgrind, and prints only the instructions of a frame.
fn count() -> Result<(), Box<dyn Error>> {
    let out = std::env::temp_dir().join(format!("tlsdash-frame-{}.callgrind", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*frame*one_frame*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .arg("--counted")
        .stdout(std::process::Stdio::null())
        .status()
        .map_err(|error| format!("cannot run valgrind (Debian package valgrind): {error}"))?;
    let counts = std::fs::read_to_string(&out)?;
    std::fs::remove_file(&out)?;
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse::<u64>().ok());
    let total = total.filter(|_| status.success()).ok_or("callgrind has counted nothing")?;
    println!("{}", total / FRAMES_COUNTED);
    Ok(())
}
