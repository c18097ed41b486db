//! A host on which many users have written to the journal, without a journald: its files are made here.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};
use records::codec::encode;
use records::ids::RunId;
use records::kinds::{Body, Phase, ProxyRecord, Record, RunRecord, Stamp};
use records::metrics::ProxyCounter;

use super::{outside, tlsdash};

/// When the first run of a host began.
const BEGAN_US: u64 = 1_700_000_000_000_000;

/// The folders in which journald keeps files, as a program sees them that is run there.
const MOUNT: &str = "mount --bind \"$0/var-log-journal\" /var/log/journal && mount --bind \"$0/run-log\" /run/log \
    && exec \"$@\"";

pub(crate) struct TestHost {
    pub(crate) root: tempfile::TempDir,
}

/// Who wrote a run.
#[derive(Clone, Copy)]
pub(crate) struct RunWriter {
    pub(crate) uid: u32,
    pub(crate) unit: &'static str,
    /// Empty for this host.
    pub(crate) machine: &'static str,
    pub(crate) hostname: &'static str,
}

pub(crate) const ROOT: RunWriter = RunWriter::of(0, "session-1.scope");
pub(crate) const UNIT: RunWriter = RunWriter::of(998, "tlsdash.service");
pub(crate) const FORGER: RunWriter = RunWriter::of(1_000, "user@1000.service");

impl RunWriter {
    pub(crate) const fn of(uid: u32, unit: &'static str) -> Self {
        Self { uid, unit, machine: "", hostname: "box" }
    }

    /// The same account on another host.
    pub(crate) const fn at(self, hostname: &'static str, machine: &'static str) -> Self {
        Self { machine, hostname, ..self }
    }
}

impl TestHost {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["var-log-journal", "run-log"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        fs::create_dir(root.path().join("var-log-journal").join(machine())).unwrap();
        Self { root }
    }

    /// Where journald would keep its files, seen from outside.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.path().join("var-log-journal").join(machine())
    }

    /// A file of this name there, as journald would have begun it.
    pub(crate) fn file(&self, name: &str) -> FileWriter {
        create(&self.folder().join(name))
    }

    /// tlsdash on this host.
    pub(crate) fn tlsdash(&self, args: &[&str]) -> Command {
        let plain = tlsdash(&self.root.path().join("state"));
        let mut command = outside("unshare", "util-linux");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--propagation", "private", "sh", "-c", MOUNT]).arg(self.root.path());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.arg(plain.get_program()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.tlsdash(args).output().unwrap()
    }
}

/// A file whose entries say themselves who wrote them.
pub(crate) fn create(path: &std::path::Path) -> FileWriter {
    let options = FileOptions { common: EntryBuf::new(), ..FileOptions::default() };
    FileWriter::create(path, options).unwrap()
}

/// The id of this machine, by which journald calls its folder.
fn machine() -> String {
    fs::read_to_string("/etc/machine-id").expect("this test needs /etc/machine-id").trim().to_owned()
}

/// A run of an account that began so many seconds after the first, with so many connections accepted.
#[derive(Clone, Copy)]
pub(crate) struct HostRun {
    pub(crate) run: u128,
    pub(crate) late_s: u64,
    pub(crate) accepted: u64,
}

impl HostRun {
    pub(crate) fn id(&self) -> String {
        RunId::from_bits(self.run << 96).to_string()
    }

    /// Writes its records, of two seconds and an end.
    pub(crate) fn write(&self, writer: &mut FileWriter, account: RunWriter) {
        self.begin(writer, account);
        let stop = RunRecord { phase: Phase::Stop, proxy: Some(self.proxy()), ..self.header() };
        self.append(writer, account, 4, Body::Run(Box::new(stop)));
        writer.flush().unwrap();
    }

    /// Writes its records as far as it has come after two seconds.
    pub(crate) fn begin(&self, writer: &mut FileWriter, account: RunWriter) {
        self.append(writer, account, 1, Body::Run(Box::new(self.header())));
        for seq in 2..=3 {
            self.append(writer, account, seq, Body::Proxy(Box::new(self.proxy())));
        }
        writer.flush().unwrap();
    }

    fn header(&self) -> RunRecord {
        RunRecord {
            listen: format!(":{}", self.run),
            upstream: "unix:/app".to_owned(),
            ..RunRecord::default()
        }
    }

    fn proxy(&self) -> ProxyRecord {
        let mut proxy = ProxyRecord::default();
        proxy.counters[ProxyCounter::Accepted] = self.accepted;
        proxy
    }

    fn append(&self, writer: &mut FileWriter, account: RunWriter, seq: u64, body: Body) {
        let at = Timestamps {
            realtime_us: BEGAN_US + (self.late_s + seq) * 1_000_000,
            monotonic_us: (1_000 + self.late_s + seq) * 1_000_000,
        };
        let stamp = Stamp {
            run: RunId::from_bits(self.run << 96),
            seq,
            mono_us: at.monotonic_us,
            realtime_us: at.realtime_us,
            interval_us: 1_000_000,
        };
        let mut entry = EntryBuf::new();
        encode(&Record { stamp, body }, &mut entry);
        let machine = if account.machine.is_empty() { machine() } else { account.machine.to_owned() };
        for (name, value) in [
            ("_MACHINE_ID", machine),
            ("_BOOT_ID", "0123456789abcdef0123456789abcdef".to_owned()),
            ("_PID", (self.run % 10_000).to_string()),
            ("_UID", account.uid.to_string()),
            ("_SYSTEMD_UNIT", account.unit.to_owned()),
            ("_HOSTNAME", account.hostname.to_owned()),
            ("_TRANSPORT", "journal".to_owned()),
        ] {
            if !value.is_empty() {
                entry.push_trusted(name, value.as_bytes());
            }
        }
        writer.append(&entry, at).unwrap();
    }
}
