//! The process fields and clocks that journald would add to an entry.

use std::fs;
use std::io::{self, Read as _};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::EntryBuf;

/// The time of an entry by the two clocks that the journal records, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// `CLOCK_REALTIME`, since 1970-01-01 UTC.
    pub realtime_us: u64,
    /// `CLOCK_MONOTONIC`, since about the boot of the machine.
    pub monotonic_us: u64,
}

impl Timestamps {
    /// Reads both clocks.
    pub fn now() -> Self {
        let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let monotonic = clock_gettime(ClockId::Monotonic);
        Self {
            realtime_us: realtime.as_micros() as u64,
            monotonic_us: monotonic.tv_sec as u64 * 1_000_000 + monotonic.tv_nsec as u64 / 1_000,
        }
    }
}

/// Returns the trusted fields that journald would add to an entry of this process, for
/// [`FileOptions::common`].
///
/// They make the usual queries (`journalctl _COMM=…`, `-b`) work on our own files. A field is absent if its
/// value cannot be determined.
///
/// [`FileOptions::common`]: crate::FileOptions::common
pub fn process_fields() -> EntryBuf {
    let mut fields = EntryBuf::new();
    let number = |n: u32| n.to_string().into_bytes();
    fields.push_trusted("_PID", &number(std::process::id()));
    fields.push_trusted("_UID", &number(rustix::process::getuid().as_raw()));
    fields.push_trusted("_GID", &number(rustix::process::getgid().as_raw()));
    if let Ok(comm) = fs::read("/proc/self/comm") {
        fields.push_trusted("_COMM", comm.trim_ascii_end());
    }
    if let Ok(exe) = std::env::current_exe() {
        fields.push_trusted("_EXE", exe.as_os_str().as_encoded_bytes());
    }
    fields.push_trusted("_HOSTNAME", rustix::system::uname().nodename().to_bytes());
    if let Some(id) = machine_id() {
        fields.push_trusted("_MACHINE_ID", hex(id).as_bytes());
    }
    if let Some(id) = boot_id() {
        fields.push_trusted("_BOOT_ID", hex(id).as_bytes());
    }
    fields.push_trusted("_TRANSPORT", b"journal");
    fields
}

/// Reads the machine id, if the machine has one.
pub(crate) fn machine_id() -> Option<u128> {
    parse_id(&fs::read_to_string("/etc/machine-id").ok()?)
}

pub(crate) fn boot_id() -> Option<u128> {
    parse_id(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Returns a random id in the form of a UUID version 4, like systemd's ids.
pub(crate) fn random_id() -> io::Result<u128> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(u128::from_be_bytes(bytes))
}

/// Formats an id as systemd does: 32 lower-case hexadecimal digits.
pub(crate) fn hex(id: u128) -> String {
    format!("{id:032x}")
}

/// Parses 32 hexadecimal digits, with or without the dashes of a UUID.
pub(crate) fn parse_id(text: &str) -> Option<u128> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_id_accepts_32_hex_digits_with_or_without_dashes() {
        let plain = "0123456789abcdef0123456789abcdef";
        assert_eq!(parse_id(plain).map(hex).as_deref(), Some(plain));
        assert_eq!(parse_id("01234567-89ab-cdef-0123-456789abcdef\n").map(hex).as_deref(), Some(plain));
        for text in ["", "uninitialized", "+123456789abcdef0123456789abcdef", &plain[1..]] {
            assert_eq!(parse_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn process_fields_name_this_process_and_have_no_fault() {
        let fields = process_fields();
        assert_eq!(fields.fault(), None);
        let pid = std::process::id().to_string();
        assert!(fields.iter().any(|field| field == ("_PID", pid.as_bytes())));
        assert!(fields.iter().any(|(name, _)| name == "_BOOT_ID"));
    }
}
