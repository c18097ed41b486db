//! A frame of the dashboard: 160 by 48 cells, everything changing, ten thousand clients in the table.
//!
//! A frame is the work after a second's records: computing the figures, laying out the screen, comparing it
//! with the former one and writing escape sequences to nowhere.

#[path = "../../tui/tests/support/synthetic.rs"]
#[expect(unreachable_pub, reason = "shared with the tests of the dashboard")]
mod synthetic;

use std::time::Duration;

use model::history::Update;
use synthetic::SyntheticLoad;
use tui::{Colours, Glyphs, Offscreen, Options, Palette};

use crate::Result;
use crate::callgrind;

/// The clients in the table.
const CLIENTS: u64 = 10_000;
/// The seconds until each client has had a record.
const UNTIL_ALL_ARE_KNOWN: u64 = 260;
/// The frames under callgrind.
const FRAMES_COUNTED: u64 = 20;

/// A dashboard with all clients.
pub struct FrameBench {
    screen: Offscreen,
    run: SyntheticLoad,
}

impl FrameBench {
    /// Draws the first frame.
    pub fn start() -> Self {
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

    /// Makes the records of the next second.
    pub fn next_second(&mut self) -> Update {
        self.run.batch()
    }

    /// Takes in a second's records.
    pub fn take(&mut self, records: Update) {
        self.screen.take(records);
    }

    /// Draws a frame and returns its bytes. A function of its own, so that callgrind can select it by name.
    #[inline(never)]
    pub fn draw_frame(&mut self) -> u64 {
        std::hint::black_box(&mut self.screen).draw()
    }
}

/// Draws the frames that [`instructions`] counts.
pub fn draw_counted() {
    let mut bench = FrameBench::start();
    for _ in 0..FRAMES_COUNTED {
        let records = bench.next_second();
        bench.take(records);
        bench.draw_frame();
    }
}

/// Counts the instructions of a frame. The program runs itself with `--part frame`, which must call
/// [`draw_counted`].
///
/// # Errors
/// If the program or valgrind cannot be run.
pub fn instructions() -> Result<f64> {
    let threads = callgrind::run_part("frame", &[])?;
    Ok(threads.iter().map(|thread| thread.within("::draw_frame")).sum::<u64>() as f64 / FRAMES_COUNTED as f64)
}
