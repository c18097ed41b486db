//! What this kernel, machine and user have, and what they lack.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use journal::{JournaldInstance, SendError};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};
use wire::capture::{PacketSocket, SocketError, SocketOptions};

use super::Check;
use crate::error::line;
use crate::journals::{probe, state_directory};
use crate::service::{environment, privileges};

/// The oldest kernel that tlsdash is tested for.
const KERNEL_MIN: (u32, u32) = (4, 18);
/// Fewer descriptors than this serve less than two thousand connections.
const DESCRIPTORS_MIN: u64 = 4_096;
/// As good as 443, which a server may be about to bind.
const LOW_PORT: u16 = 444;
/// The kernel's default length of a Unix socket's queue. A terminator's log needs more.
const DATAGRAMS_DEFAULT: u64 = 10;

/// The checks, each made when it is asked for.
pub(super) fn checks() -> impl Iterator<Item = Check> {
    let all: [fn() -> Check; 8] =
        [kernel, cores, descriptors, low_ports, packets, datagrams, journald, state_directory];
    all.into_iter().map(|check| check())
}

fn kernel() -> Check {
    let release = environment::header().kernel;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    let version = numbers.next().zip(numbers.next());
    if version.is_some_and(|version| version >= KERNEL_MIN) {
        Check::ok("kernel", release)
    } else {
        let (major, minor) = KERNEL_MIN;
        Check::lacks("kernel", release, format!("use Linux {major}.{minor} or later"))
    }
}

fn cores() -> Check {
    match environment::header().cores {
        1 => Check::lacks(
            "cores",
            "1: a load on this machine takes CPU time from the proxy",
            "start the load on another machine (docs/load.md)",
        ),
        cores => Check::ok("cores", cores.to_string()),
    }
}

fn descriptors() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < DESCRIPTORS_MIN => Check::lacks(
            "descriptors",
            format!("at most {limit}, two for each connection"),
            "raise the hard limit: LimitNOFILE= of the unit, or /etc/security/limits.conf",
        ),
        limit => Check::ok(
            "descriptors",
            limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit}")),
        ),
    }
}

fn low_ports() -> Check {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, LOW_PORT)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Check::lacks(
            "low ports",
            "this user may not listen on 443",
            format!(
                "sudo setcap cap_net_bind_service+ep {}, or use the unit tlsdash.service",
                environment::program()
            ),
        ),
        // Permission is checked first, so a port in use is one that could be bound.
        Ok(_) => Check::ok("low ports", "this user may listen on 443"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Check::ok("low ports", "this user may listen on 443")
        }
        Err(error) => Check::lacks("low ports", error.to_string(), "give 127.0.0.1 to the interface lo"),
    }
}

fn packets() -> Check {
    let options = SocketOptions { interface: Some("lo".to_owned()), ports: Vec::new() };
    match PacketSocket::open(&options) {
        Ok(_) => Check::ok("packets", "tlsdash wire may read them"),
        Err(SocketError::NotPermitted { program }) => Check::lacks(
            "packets",
            "tlsdash wire needs CAP_NET_RAW",
            format!("sudo {program} wire, or once sudo setcap cap_net_raw+ep {program}"),
        ),
        Err(error) => Check::lacks(
            "packets",
            error.to_string(),
            "use a kernel or a container that allows packet sockets, or tlsdash observe",
        ),
    }
}

fn datagrams() -> Check {
    const NAME: &str = "net.unix.max_dgram_qlen";
    let text = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap_or_default();
    match text.trim().parse::<u64>() {
        Ok(lines) if lines > DATAGRAMS_DEFAULT => Check::ok("datagrams", format!("{NAME} is {lines}")),
        Ok(lines) => Check::lacks(
            "datagrams",
            format!("{NAME} is {lines}: observe --syslog unix: may lose lines"),
            format!("sudo sysctl {NAME}=512, or --syslog udp:127.0.0.1:5514"),
        ),
        Err(_) => Check::lacks("datagrams", format!("{NAME} cannot be read"), "mount /proc/sys"),
    }
}

fn journald() -> Check {
    let Err(error) = probe::open(&JournaldInstance::system()) else {
        return Check::ok("journald", "takes entries, and this user can read them");
    };
    if matches!(error.downcast_ref(), Some(SendError::Absent { .. })) {
        let remedy = "none is needed: runs are written to files in the state directory";
        return Check::lacks("journald", "none runs here", remedy);
    }
    let remedy = if privileges::is_root() {
        "see Storage= and MaxLevelStore= in journald.conf(5)"
    } else {
        "sudo usermod -aG systemd-journal $USER, and log in again"
    };
    Check::lacks("journald", line(&error), remedy)
}

/// Whether runs can be written to files. Nothing is made.
fn state_directory() -> Check {
    let folder = match state_directory::path() {
        Ok(folder) => folder,
        Err(error) => return Check::lacks("state directory", line(&error), "set HOME"),
    };
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or_else(|| Path::new("/"));
    match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Check::ok("state directory", folder.display().to_string()),
        Err(error) => Check::lacks(
            "state directory",
            format!("{}: cannot write to {}: {error}", folder.display(), existing.display()),
            "set XDG_STATE_HOME, or give --journal file:PATH.journal",
        ),
    }
}
