//! Writes journals of many hosts into a folder, in real time, as `systemd-journal-remote` fills one: to measure what
//! `tlsdash watch FOLDER` costs.
//!
//! ```text
//! cargo run --release -p benchmarks --example hosts -- /var/tmp/remote --hosts 50 --clients 200 --interval-s 1 --seconds 120
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use benchmarks::spread::LatencySpread;
use benchmarks::traffic::{LoadTraffic, count_proxy, host};
use benchmarks::{Result, argument};
use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, RecordWriter};
use records::delta::{Delta as _, ProxyDelta};
use records::ids::RunId;
use records::kinds::RunRecord;

/// The most that a file may grow to, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("name the folder to write to")?;
    let number = |name: &str, usual: u64| argument(name).map_or(Ok(usual), |text| text.parse::<u64>());
    let (hosts, interval_s) = (number("hosts", 50)?, number("interval-s", 1)?.max(1));
    let requests = number("rate", 1_000)? * interval_s;
    let traffic = LoadTraffic { requests, clients: u32::try_from(number("clients", 200)?)? };
    std::fs::create_dir_all(&folder)?;
    // Each interval has the same counts, so that the writer takes little CPU.
    let mut interval = ProxyDelta::default();
    interval.clear();
    count_proxy(&mut interval, traffic, &mut LatencySpread::default());
    let mut all = Vec::new();
    for at in 0..hosts {
        all.push(Host::begin(Path::new(&folder), at)?);
    }
    let began = Instant::now();
    for second in 1..=number("seconds", 120)? {
        // Each host has its own beginning of a second.
        for (at, one) in (0..hosts).zip(&mut all) {
            let due = Duration::from_micros((second - 1) * 1_000_000 + at * 1_000_000 / hosts);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            if second % interval_s == at % interval_s {
                let now = Timestamps::now();
                one.publisher.interval(Some(&interval), None, Some(host(second)), now);
            }
            one.publisher.retry();
        }
    }
    for mut one in all {
        one.publisher.stop(RunRecord::default(), None, None, None, Timestamps::now());
        one.publisher.into_sink().close()?;
    }
    Ok(())
}

/// A host that writes its own file.
struct Host {
    publisher: Publisher<RecordWriter>,
}

impl Host {
    fn begin(folder: &Path, at: u64) -> Result<Self> {
        let name = format!("edge-{at:03}");
        let mut common = EntryBuf::new();
        for (field, value) in [
            ("_HOSTNAME", name.clone()),
            ("_MACHINE_ID", format!("{:032x}", 0xa000_0000 + at)),
            ("_BOOT_ID", format!("{:032x}", 0xb000_0000 + at)),
            ("_PID", "700".to_owned()),
            ("_UID", "998".to_owned()),
            ("_SYSTEMD_UNIT", "tlsdash.service".to_owned()),
            ("_TRANSPORT", "journal".to_owned()),
        ] {
            common.push_trusted(field, value.as_bytes());
        }
        let options = FileOptions { common, size_max: FILE_BYTES_MAX, ..FileOptions::default() };
        let file = FileWriter::create(&folder.join(format!("remote-{name}.journal")), options)?;
        let now = Timestamps::now();
        let mut publisher =
            Publisher::new(RunId::random()?, RecordWriter::new(file), RECORDS_PER_SECOND_OWN, now);
        let run = RunRecord {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: name,
            listen: "[::]:8443".to_owned(),
            upstream: "unix:/run/app.sock".to_owned(),
            workers: 2,
            cores: 2,
            ..RunRecord::default()
        };
        publisher.start(run, now);
        Ok(Self { publisher })
    }
}
