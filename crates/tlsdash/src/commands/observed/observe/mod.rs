//! `tlsdash observe`: the figures of another terminator, from its log.

mod args;
pub(crate) mod setup;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use nix::unistd::{Group, User};
use observe::{
    FollowedFile, JournalLines, LogKind, LogReplay, LogSocket, ReplayedLog, SocketAddress, SocketOptions,
    observe_log,
};
use recorder::host::{ProcessObserver, unit_processes};
use recorder::observer::Observer;
use records::kinds::{Level, NoticeRecord, RunRecord};
use records::text::quantity;
use records::values::AbsentFigures;

use crate::cli::Flags;
use crate::commands::observed::replayed;
use crate::commands::observed::session::{self, Started};
use crate::error::usage;
use crate::service;
use crate::service::environment;

pub(crate) use args::ObserveArgs;
use args::ObserveCommand;

/// Intervals of a whole log, in seconds, and how many there may be of each but the longest.
const INTERVALS_S: [u64; 6] = [1, 2, 5, 10, 30, 60];
const INTERVALS_MAX: u64 = 1_500;
const UNKNOWN_INTERVAL_S: u64 = 10;

const NO_THREAD: &str = "cannot start the thread observe";

/// Observes until it must end, or to the end of a log.
pub(crate) fn run(args: &ObserveArgs, flags: &Flags) -> anyhow::Result<()> {
    if let Some(ObserveCommand::Setup(args)) = &args.command {
        return setup::run(args);
    }
    let kind = args.kind.context("clap requires a terminator without a subcommand")?;
    match (&args.syslog, &args.file) {
        (Some(address), _) => live(args, flags, kind, &address.to_string(), || {
            let socket = bind(args, address)?;
            let stream = socket.local_address();
            let observer = observe_log(move || Ok(socket), kind.parser()).context(NO_THREAD)?;
            Ok((observer, stream.map(|address| format!("udp:{address}"))))
        }),
        (None, Some(path)) if args.follow => {
            if path.as_os_str() == "-" {
                return Err(usage("--follow needs a file that can be reopened: --file - is standard input"));
            }
            live(args, flags, kind, &path.display().to_string(), || {
                let file = FollowedFile::open(path).with_context(|| cannot_read(path))?;
                let observer = observe_log(move || Ok(file), kind.parser()).context(NO_THREAD)?;
                Ok((observer, None))
            })
        }
        (None, Some(path)) => replay(args, kind, path, flags),
        (None, None) if args.journal_unit.is_some() => {
            let unit = args.journal_unit.clone().unwrap_or_default();
            live(args, flags, kind, &format!("of {unit} in the journal"), || {
                let opened = unit.clone();
                let open = move || JournalLines::open(&opened).map_err(std::io::Error::other);
                let observer = observe_log(open, kind.parser())
                    .with_context(|| format!("cannot follow --journal-unit {unit}"))?;
                Ok((observer, None))
            })
        }
        (None, None) => Err(usage(format!(
            "observe {kind}: give --syslog SOCKET or --journal-unit UNIT for a running one, or --file PATH; `tlsdash observe setup {kind}` prints what to configure"
        ))),
    }
}

/// Counts a log that is whole.
fn replay(args: &ObserveArgs, kind: LogKind, path: &Path, flags: &Flags) -> anyhow::Result<()> {
    replayed::refuse_live_options(flags, "--syslog, --journal-unit or --follow")?;
    let is_given = flags.is_given("interval");
    let interval = if is_given { args.observing.run.interval.0 } else { usual_interval(kind, path) };
    let (mut log, name) = replayed::open(path)?;
    replayed::run(&args.observing, flags, header(kind, &name), interval, |intervals| {
        let replay = LogReplay::new(intervals).run(&mut kind.parser(), &mut log);
        let ReplayedLog { sink, lines, bad, lost, notices } =
            replay.with_context(|| format!("observe {kind} --file {name}"))?;
        let each = quantity::shown(interval.as_secs_f64(), "s");
        crate::say(format_args!(
            "{lines} lines of {name}, {bad} not readable, {lost} lost; in intervals of {each} (--interval)"
        ));
        for notice in &notices {
            crate::say(format_args!("{}", notice.text));
        }
        Ok(sink)
    })
}

/// The length of intervals of which there are not too many for the time that a log spans: a year of seconds would be a
/// thousand times as large as the log. What cannot be known before it is read, as of a pipe, gets a middle one.
fn usual_interval(kind: LogKind, path: &Path) -> Duration {
    // Whoever writes into a pipe must not see it closed before it is read.
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let span = file.and_then(|mut file| observe::log_span(kind, &mut file).ok());
    let least_s = span.map_or(UNKNOWN_INTERVAL_S, |span| span.as_secs() / (INTERVALS_MAX + 1) + 1);
    let [.., longest_s] = INTERVALS_S;
    Duration::from_secs(INTERVALS_S.into_iter().find(|seconds| *seconds >= least_s).unwrap_or(longest_s))
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read --file {}", path.display())
}

/// The first record of a run of this log.
fn header(kind: LogKind, place: &str) -> RunRecord {
    RunRecord {
        upstream: records::text::clean::text(&format!("{kind}, log {place}")),
        log: kind.to_string(),
        log_resolution_us: observe::RESOLUTION.as_micros() as u64,
        absent: AbsentFigures::new(kind.absent().iter().map(|absent| (absent.figure, absent.reason))),
        ..environment::header()
    }
}

/// Counts a log as it is written. `start` begins to read, and gives the address if the kernel chose it.
fn live(
    args: &ObserveArgs,
    flags: &Flags,
    kind: LogKind,
    place: &str,
    start: impl FnOnce() -> anyhow::Result<(Observer, Option<String>)>,
) -> anyhow::Result<()> {
    let session = args.observing.resolve(flags)?;
    let processes = processes(args)?;
    session::run(session, &args.observing.certificate_of, processes, || {
        let (observer, address) = start()?;
        let place = address.as_deref().unwrap_or(place);
        let header = header(kind, place);
        let absent =
            format!("the log of {kind} has times to 1 ms, and does not say: {}", header.absent.as_str());
        Ok(Started {
            observer,
            header,
            title: format!("{kind} < {place}"),
            does: format!("observing {kind}, log {place}"),
            notices: vec![NoticeRecord::new(Level::Notice, "log", &absent)],
        })
    })
}

/// The processes of `--pid` and `--unit`.
fn processes(args: &ObserveArgs) -> anyhow::Result<Option<ProcessObserver>> {
    let of_unit = match &args.unit {
        Some(unit) => unit_processes(unit).with_context(|| format!("cannot observe --unit {unit}"))?,
        None => Vec::new(),
    };
    let pids: Vec<u32> = args.pid.iter().copied().chain(of_unit).collect();
    ProcessObserver::new(&pids).context("cannot observe --pid")
}

fn bind(args: &ObserveArgs, address: &SocketAddress) -> anyhow::Result<LogSocket> {
    let owner = args.socket_owner.as_deref().map(owner).transpose()?.unwrap_or_default();
    if let SocketAddress::Unix(path) = address {
        service::make_socket_folder(path).with_context(|| format!("cannot listen on --syslog {address}"))?;
    }
    let options = SocketOptions { mode: args.socket_mode, owner };
    LogSocket::bind(address, options).with_context(|| format!("cannot listen on --syslog {address}"))
}

/// The ids of `USER`, `USER:GROUP` or `:GROUP`.
fn owner(text: &str) -> anyhow::Result<(Option<u32>, Option<u32>)> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    let unknown = |what, name| usage(format!("--socket-owner {text}: there is no {what} {name:?}"));
    let uid = match user {
        "" => None,
        name => Some(User::from_name(name).ok().flatten().ok_or_else(|| unknown("user", name))?.uid.as_raw()),
    };
    let gid = match group {
        "" => None,
        name => {
            Some(Group::from_name(name).ok().flatten().ok_or_else(|| unknown("group", name))?.gid.as_raw())
        }
    };
    Ok((uid, gid))
}
