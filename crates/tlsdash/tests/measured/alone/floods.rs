//! What it costs that others flood the journal with runs of their own. With `TLSDASH_FLOOD=full` the floods are those of
//! docs/measurements.md, and `--nocapture` shows what was measured.

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::journald::TestJournald;
use crate::common::not_run::say_not_run;
use crate::common::{TlsdashProcess, number, outside, until, upstream};
use journal::{EntryBuf, Sender};
use records::codec::encode;
use records::histogram::Sketch;
use records::ids::RunId;
use records::kinds::{Body, ClientRecord, ProxyRecord, Record, Stamp};
use records::metrics::{Counters, ProxyCounter};
use rustix::process::Uid;
use serde_json::Value;

/// Runs of so many clients, each with one record.
#[derive(Clone, Copy, Debug)]
struct SyntheticRuns {
    runs: u32,
    clients: u32,
}

impl SyntheticRuns {
    /// The two floods: one after the other.
    fn both() -> [Self; 2] {
        match std::env::var_os("TLSDASH_FLOOD") {
            Some(_) => [Self { runs: 1, clients: 32_000 }, Self { runs: 16, clients: 10_000 }],
            None => [Self { runs: 1, clients: 8_000 }, Self { runs: 16, clients: 1_000 }],
        }
    }

    /// Sends it as another user, if this is root: of a thread alone, since every one has its own user.
    fn send(self, journald: &TestJournald) {
        let socket = journald.root.path().join("run-systemd/journal/socket");
        let mut sender = Sender::open_at(&socket).unwrap();
        let began = Instant::now();
        let sent = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                let user = Uid::from_raw(1_000);
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            }
            self.records().map(|record| send(&mut sender, &record)).count()
        });
        println!("{self:?}: {} records in {:.1} s", sent.join().unwrap(), began.elapsed().as_secs_f64());
    }

    fn records(self) -> impl Iterator<Item = Record> {
        let mut exchange = Sketch::default();
        (0..24)
            .for_each(|power| (8..16).for_each(|part| exchange.record(Duration::from_micros(part << power))));
        let ids: Vec<RunId> = (0..self.runs).map(|_| RunId::random().unwrap()).collect();
        let record = |run, seq: u32, body| {
            let mono_us = u64::from(seq) * 1_000;
            let seq = u64::from(seq);
            Record { stamp: Stamp { run, seq, mono_us, realtime_us: 0, interval_us: 1_000_000 }, body }
        };
        let of_client = move |run, number: u32| {
            let client = IpAddr::from((0x0a00_0000 + number).to_be_bytes()).into();
            let exchange = exchange.clone();
            let body = ClientRecord {
                client,
                epoch: 1,
                last: false,
                open: 1,
                counters: Counters::default(),
                rtt_us: 0,
                exchange,
            };
            record(run, 2 + number, Body::Client(body))
        };
        let mut proxy = ProxyRecord::default();
        proxy.counters[ProxyCounter::Accepted] = 666_666;
        let first = ids.clone().into_iter().map(move |run| record(run, 1, Body::Run(Box::default())));
        let last = ids
            .clone()
            .into_iter()
            .map(move |run| record(run, 2 + self.clients, Body::Proxy(Box::new(proxy.clone()))));
        let rounds =
            (0..self.clients).flat_map(move |number| ids.clone().into_iter().map(move |run| (run, number)));
        first.chain(rounds.map(move |(run, number)| of_client(run, number))).chain(last)
    }
}

/// Sends a record, and waits while the queue is full.
fn send(sender: &mut Sender, record: &Record) {
    let mut entry = EntryBuf::new();
    encode(record, &mut entry);
    while let Err(error) = sender.send(&entry) {
        assert!(matches!(error, journal::SendError::Full { .. }), "{error}");
        sender.wait(Duration::from_secs(1));
    }
}

fn journald() -> TestJournald {
    // A user is in a session of his own, and journald drops what exceeds its limit of that; so it need not here.
    TestJournald::system("RateLimitBurst=0\nRuntimeMaxUse=2G")
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

#[test]
fn floods_of_others_cost_a_serving_process_no_memory() {
    let journald = journald();
    let app = upstream(journald.root.path(), b"hello");
    let mut command = journald.tlsdash(&["--headless", "--listen", "127.0.0.1:0", "--format", "json"]);
    command.args(["--journal", "system", "--upstream"]).arg(format!("unix:{}", app.display()));
    let mut running = TlsdashProcess::start(command);
    let address = running.address();
    request(address);
    until("a record of the request", || {
        let records = journald.entries(&["TLSDASH_KIND=proxy"]);
        records.last().is_some_and(|entry| number(entry, "TLSDASH_CONNECTIONS_ACCEPTED_TOTAL") == 1)
    });
    let before = peak_bytes(running.pid()).unwrap();
    let peak = peak_until_the_end(running.pid());
    for flood in SyntheticRuns::both() {
        flood.send(&journald);
        println!(
            "serving: {} MiB at the most, {} before",
            mib(peak_bytes(running.pid()).unwrap()),
            mib(before)
        );
    }
    request(address);
    // It ends when it has read all there is.
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let peak = peak.join().unwrap();
    println!("serving: {} MiB at the most, at its end", mib(peak));
    assert!(peak < before + (8 << 20), "{} MiB with the floods, {} before", mib(peak), mib(before));
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let journal = &summary["journal"];
    assert_eq!(summary["proxy"]["connections"]["accepted"], 2, "{summary}");
    assert_eq!(
        (&journal["lost"], &journal["foreign"], &journal["malformed"]),
        (&0.into(), &0.into(), &0.into())
    );
}

fn request(address: std::net::SocketAddr) {
    let got = outside("curl", "curl").args(["-sk", "--http1.0", &format!("https://{address}/")]).output();
    assert_eq!(got.unwrap().stdout, b"hello");
}

/// The most memory that a process has taken so far; `None` once it is gone.
fn peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Looks at it again and again until the process is gone.
fn peak_until_the_end(pid: u32) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut most = 0;
        while let Some(bytes) = peak_bytes(pid) {
            most = most.max(bytes);
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    })
}

/// Runs it to its end; what it printed and said, and the most memory that it was seen to take.
fn measured(mut command: Command) -> (String, String, u64) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let peak = peak_until_the_end(child.id());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), peak.join().unwrap())
}

#[test]
fn whoever_reads_takes_bounded_memory_and_sees_no_run_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        let test = "whoever_reads_takes_bounded_memory_and_sees_no_run_of_another_user";
        return say_not_run(test, "only root can flood the journal as another user");
    }
    let journald = journald();
    let demo = ["demo", "--headless", "--duration", "2s", "--format", "json", "--journal", "system"];
    let demo: Value = serde_json::from_slice(&journald.tlsdash(&demo).output().unwrap().stdout).unwrap();
    let watch = ["watch", "system", "--headless", "--format", "json"];
    let (_, _, alone) = measured(journald.tlsdash(&watch));
    for flood in SyntheticRuns::both() {
        flood.send(&journald);
    }
    let (printed, said, memory) = measured(journald.tlsdash(&watch));
    println!("watch: {} MiB alone, {} MiB with the floods", mib(alone), mib(memory));
    let seen: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((&seen["run"], &seen["uid"]), (&demo["run"], &0.into()));
    assert!(said.contains("17 runs of uid 1000 ignored: --uid 1000 or --any-user shows them"), "{said}");
    // What the reader of files keeps at hand, and nothing of the runs.
    assert!(memory < 96 << 20, "{} MiB", mib(memory));

    let (printed, _, memory) = measured(journald.tlsdash(&[&watch[..], &["--any-user"]].concat()));
    println!("watch --any-user: {} MiB with the floods", mib(memory));
    assert!(printed.contains("666666"), "{printed}");
    assert!(memory < (256 + 128) << 20, "{} MiB", mib(memory));
}
