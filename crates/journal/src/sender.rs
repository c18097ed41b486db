//! The client of journald's native protocol.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size, set_socket_send_buffer_size_force};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::entry::{EntryBuf, EntryFault};
use crate::error::SendError;
use crate::instance::JournaldInstance;

/// The send buffer that libsystemd requests, so that journald's queue is the bottleneck.
const SEND_BUFFER_BYTES: usize = 8 << 20;

/// The largest entry that is sent as a datagram, in encoded bytes.
///
/// A datagram of this size needs no large contiguous kernel memory, and fits every machine's limit.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Sends entries to journald by its [native protocol]. It never waits.
///
/// Every value is sent with its length, so no byte in a value can end a field or begin another.
///
/// The sender has no thread and no queue. If journald's queue is full, `send` returns an error at once, and
/// the caller drops the entry, merges it, or [waits](Self::wait) and retries. Nothing needs to be flushed or
/// closed.
///
/// # What `Ok` promises
/// The kernel has put the entry into the queue of the socket of a running journald. The entry may still not
/// be stored:
///
/// - If journald ends, the entries in its queue are lost with the socket, unless systemd holds the socket for
///   the next journald. A journald that is killed also loses the entry that it is processing.
/// - journald drops, without an answer, entries above its rate limit: 10,000 in 30 s, times a factor for the
///   free disk space, for each unit (a service, or the scope of a login) and class of priorities. It logs the
///   count of dropped entries before the next accepted entry of the same unit and class.
/// - journald drops entries with a `PRIORITY` above `MaxLevelStore`, see journald.conf(5), and entries that
///   it cannot write.
///
/// [native protocol]: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
#[derive(Debug)]
pub struct Sender {
    path: Arc<Path>,
    /// Connected, since only then does `poll` report whether journald's queue has room.
    socket: UnixDatagram,
    /// The encoded entry; the buffer is reused.
    message: Vec<u8>,
}

impl Sender {
    /// Connects to an instance of journald.
    ///
    /// # Errors
    /// [`SendError::Absent`] if it is not running, [`SendError::Denied`] if this user may not use it, and
    /// [`SendError::Io`] for any other error of the operating system.
    pub fn open(instance: &JournaldInstance) -> Result<Self, SendError> {
        Self::open_at(&instance.socket())
    }

    /// Connects to the journald whose native socket has this path, for example in a container.
    ///
    /// # Errors
    /// Like [`open`](Self::open).
    pub fn open_at(socket: &Path) -> Result<Self, SendError> {
        let path: Arc<Path> = socket.into();
        let socket = new_socket().map_err(|error| SendError::of_io("open a socket for", &path, error))?;
        let sender = Self { path, socket, message: Vec::new() };
        sender.connect()?;
        Ok(sender)
    }

    /// Sends one entry. Reconnects if journald was restarted.
    ///
    /// It never waits. A warm sender does not allocate for entries up to 64 KiB; it sends larger ones as
    /// sealed memory files.
    ///
    /// # Errors
    /// On an error, nothing was sent. [`SendError::Full`] and [`SendError::Absent`] are temporary: retry
    /// later. [`SendError::Entry`] is not: the entry has a [fault](EntryBuf::fault), no field, or a trusted
    /// field (`_PID`), which journald would drop silently.
    pub fn send(&mut self, entry: &EntryBuf) -> Result<(), SendError> {
        encode(entry, &mut self.message)
            .map_err(|fault| SendError::Entry { socket: self.path.clone(), fault })?;
        let sent = match self.transmit() {
            Err(error) if is_gone(&error) => {
                self.connect()?;
                self.transmit()
            }
            sent => sent,
        };
        sent.map_err(|error| SendError::of_io("send an entry to", &self.path, error))
    }

    /// Waits after [`SendError::Full`] until journald's queue has room; returns whether it has.
    ///
    /// Returns false after `timeout`, or earlier on a signal. Returns true if journald has ended, since the
    /// next `send` reports that; so do not use it after [`SendError::Absent`].
    pub fn wait(&self, timeout: Duration) -> bool {
        // A timeout too long for the system means no timeout.
        let timeout = Timespec::try_from(timeout).ok();
        let mut sockets = [PollFd::new(&self.socket, PollFlags::OUT)];
        poll(&mut sockets, timeout.as_ref()) == Ok(1)
    }

    fn connect(&self) -> Result<(), SendError> {
        self.socket.connect(&self.path).map_err(|error| SendError::of_io("connect to", &self.path, error))
    }

    fn transmit(&self) -> io::Result<()> {
        if self.message.len() <= DATAGRAM_BYTES_MAX {
            match self.socket.send(&self.message) {
                Err(error) if is_too_large(&error) => {}
                sent => return sent.map(drop),
            }
        }
        send_file(&self.socket, sealed(&self.message)?.as_fd())
    }
}

fn new_socket() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    // The first call works for every user up to the system's limit, the second only for root. A smaller
    // buffer only fills up earlier.
    set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES).ok();
    set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES).ok();
    Ok(socket)
}

/// Encodes an entry: for each field the name, a newline, the length of the value as 64 bits in little-endian
/// order, the value, and a newline.
fn encode(entry: &EntryBuf, message: &mut Vec<u8>) -> Result<(), EntryFault> {
    message.clear();
    if let Some(fault) = entry.fault() {
        return Err(fault.clone());
    }
    for (payload, name_len) in entry.payloads() {
        let (name, value) = (&payload[..name_len], &payload[name_len + 1..]);
        if name.starts_with(b"_") {
            return Err(EntryFault::FieldName(String::from_utf8_lossy(name).into_owned()));
        }
        message.extend_from_slice(name);
        message.push(b'\n');
        message.extend_from_slice(&(value.len() as u64).to_le_bytes());
        message.extend_from_slice(value);
        message.push(b'\n');
    }
    if message.is_empty() { Err(EntryFault::Empty) } else { Ok(()) }
}

/// Creates a sealed memory file, which journald can read without copying it.
fn sealed(message: &[u8]) -> io::Result<File> {
    let mut file = memory_file()?;
    file.write_all(message)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file)
}

/// Creates an empty memory file that is not executable.
///
/// It does not set the seal `F_SEAL_EXEC` (`MFD_NOEXEC_SEAL`): a journald before 254 treats a file with that seal as
/// unsealed, and accepts it only from root.
fn memory_file() -> io::Result<File> {
    let create =
        |flags| memfd_create("journal-entry", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | flags);
    let file = match create(MemfdFlags::EXEC) {
        // Linux before 6.3 lacks the flag.
        Err(Errno::INVAL) => create(MemfdFlags::empty()),
        // The administrator requires the seal (`vm.memfd_noexec=2`).
        Err(Errno::ACCESS) => create(MemfdFlags::NOEXEC_SEAL),
        made => made,
    }?;
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Sends an empty datagram with a file descriptor.
fn send_file(socket: &UnixDatagram, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    let has_room = control.push(SendAncillaryMessage::ScmRights(&files));
    debug_assert!(has_room, "the space is for one file");
    sendmsg(socket, &[IoSlice::new(&[])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Returns whether the connected journald has ended.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | NotConnected | BrokenPipe)
}

/// Returns whether the datagram is too large for the kernel.
fn is_too_large(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MSGSIZE | Errno::NOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> (tempfile::TempDir, UnixDatagram, Sender) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = Sender::open_at(&path).unwrap();
        (dir, receiver, sender)
    }

    #[test]
    fn a_datagram_too_large_for_the_kernel_is_sent_as_a_file() {
        let (_dir, receiver, mut sender) = receiver();
        set_socket_send_buffer_size(&sender.socket, 4096).unwrap();
        let mut entry = EntryBuf::new();
        entry.push("A", &vec![b'x'; DATAGRAM_BYTES_MAX / 2]);
        sender.send(&entry).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn memory_files_are_sealed_and_not_executable() {
        let file = sealed(b"A\n").unwrap();
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&file).unwrap().st_mode);
        assert_eq!(mode, Mode::RUSR | Mode::WUSR);
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        assert_eq!(seals, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL);
    }

    #[test]
    fn the_message_buffer_is_reused() {
        let (_dir, receiver, mut sender) = receiver();
        let mut entry = EntryBuf::new();
        entry.push("A", &[b'x'; 1000]);
        sender.send(&entry).unwrap();
        let memory = (sender.message.as_ptr(), sender.message.capacity());
        for number in 0..100 {
            entry.clear();
            entry.push_display("A", number);
            receiver.recv(&mut [0; 2000]).unwrap();
            sender.send(&entry).unwrap();
        }
        assert_eq!((sender.message.as_ptr(), sender.message.capacity()), memory);
    }
}
