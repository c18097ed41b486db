//! Follows a journal that another program writes, such as journald, and prints the delay of its entries by
//! their own times.
//!
//! `cargo run --release -p journal --example lag -- system|namespace:NAME|PATH [SECONDS]`

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::{JournaldInstance, Start, Tail, Timestamps};

/// The interval between polls when nothing is new.
const POLL: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let source = arguments.next().ok_or("system, namespace:NAME, or which file or folder?")?;
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let mut tail = match source.parse::<JournaldInstance>() {
        Ok(instance) => Tail::open_instance(&instance, Start::End)?,
        Err(_) => Tail::open(Path::new(&source), Start::End)?,
    };
    let mut lags_us = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        let lag = |realtime_us| Timestamps::now().realtime_us.saturating_sub(realtime_us);
        let progress = tail.poll(|entry| lags_us.push(lag(entry.realtime_us())))?;
        if !progress.more {
            std::thread::sleep(POLL);
        }
    }
    lags_us.sort_unstable();
    let at = |quantile: f64| {
        let rank = ((lags_us.len() as f64 * quantile) as usize).min(lags_us.len().saturating_sub(1));
        lags_us.get(rank).map_or(0.0, |lag| *lag as f64 / 1e3)
    };
    println!("{} entries, p50 {:.1}, p99 {:.1}, max {:.1} ms", lags_us.len(), at(0.5), at(0.99), at(1.0));
    Ok(())
}
