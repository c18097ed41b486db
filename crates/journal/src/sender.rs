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
use crate::instance::Instance;

/// What libsystemd asks for, so that it is the daemon's queue that bounds what is on its way.
const SEND_BUFFER_BYTES: usize = 8 << 20;

/// The largest entry that goes as a datagram, in bytes as the protocol has it.
///
/// Up to here the kernel needs no large piece of contiguous memory, and no machine's limit is in the way.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Sends entries to a journald by its [native protocol], one at a time, without ever waiting.
///
/// All values travel with their length in front, so no byte in a value can end a field or begin another.
///
/// It has no thread and no queue: when the daemon has no room, `send` says so at once, and it is the caller who
/// drops, merges, or [waits](Self::wait) and tries again. Nor is there anything to flush or to close.
///
/// # What `Ok` promises
/// That the kernel has put the entry into the queue of the daemon's socket; never that of a daemon that has gone,
/// since a sender notices a new one by itself. It does not promise that the entry can be read back:
///
/// - What the daemon had not yet taken when it ended is lost with its socket, unless somebody else holds that, as
///   systemd does for the services of journald: then the next daemon takes it. A daemon that is killed also takes
///   the entry along that it had in hand.
/// - journald gives no answer. It drops what exceeds its rate limit: 10,000 in 30 s, times a factor for the free
///   disk, for a unit (a service, or the scope of a login) and a class of priorities. How many these were it tells
///   the journal with the next entry of the same that it lets through.
/// - It drops what has a `PRIORITY` above its `MaxLevelStore`, see journald.conf(5), and what it cannot write.
///
/// [native protocol]: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
#[derive(Debug)]
pub struct Sender {
    path: Arc<Path>,
    /// It is connected, since only then do the kernel's answers to `poll` tell of room in the daemon's queue.
    socket: UnixDatagram,
    /// The entry as the protocol has it; the memory is used again for the next.
    message: Vec<u8>,
}

impl Sender {
    /// Connects to an instance of journald.
    ///
    /// # Errors
    /// [`SendError::Absent`] if it is not there now, [`SendError::Denied`] if it may not be used, and
    /// [`SendError::Io`] for whatever else the operating system has against it.
    pub fn open(instance: &Instance) -> Result<Self, SendError> {
        Self::open_at(&instance.socket())
    }

    /// Connects to the journald whose native socket is found under another path, such as that of a container.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(socket: &Path) -> Result<Self, SendError> {
        let path: Arc<Path> = socket.into();
        let socket = new_socket().map_err(|error| SendError::of_io("open a socket for", &path, error))?;
        let sender = Self { path, socket, message: Vec::new() };
        sender.connect()?;
        Ok(sender)
    }

    /// Sends one entry, and connects anew if the daemon is another one by now.
    ///
    /// It never waits. A warm sender allocates nothing for entries up to 64 KiB; larger ones go in a sealed memory
    /// file each.
    ///
    /// # Errors
    /// Nothing was sent, then. [`SendError::Full`] and [`SendError::Absent`] pass by, and the next call tries
    /// again. [`SendError::Entry`] will not: the entry has a [fault](EntryBuf::fault) or no field, or it has a
    /// trusted field (`_PID`), which journald takes from nobody and would leave out unsaid.
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

    /// Waits after [`SendError::Full`] until the daemon has room again, and tells whether it has.
    ///
    /// False after `timeout`, or earlier if a signal came. True also where the daemon has gone, since the next
    /// `send` will tell; so this is nothing to wait with after [`SendError::Absent`].
    pub fn wait(&self, timeout: Duration) -> bool {
        // A time too long for the system is as good as none.
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
    // The first goes as far as anybody may go, the second is for root. A smaller buffer is full earlier, that is all.
    set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES).ok();
    set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES).ok();
    Ok(socket)
}

/// Writes an entry as the protocol has it: of each field the name, a newline, the length of the value in 64 bits,
/// little endian, the value, and a newline.
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

/// Makes a file in memory that nobody can change any more, so that journald need not copy it.
fn sealed(message: &[u8]) -> io::Result<File> {
    let mut file = memory_file()?;
    file.write_all(message)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file)
}

/// Makes an empty file in memory that cannot be executed.
///
/// Without the seal that says so (`F_SEAL_EXEC`, by `MFD_NOEXEC_SEAL`): a journald before 254 takes a file with it for one
/// that is not sealed, and refuses it to everybody but root.
fn memory_file() -> io::Result<File> {
    let create =
        |flags| memfd_create("journal-entry", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | flags);
    let file = match create(MemfdFlags::EXEC) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::INVAL) => create(MemfdFlags::empty()),
        // The administrator allows no other (`vm.memfd_noexec=2`).
        Err(Errno::ACCESS) => create(MemfdFlags::NOEXEC_SEAL),
        made => made,
    }?;
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Sends an empty datagram that a file goes along with.
fn send_file(socket: &UnixDatagram, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    let has_room = control.push(SendAncillaryMessage::ScmRights(&files));
    debug_assert!(has_room, "the space is for one file");
    sendmsg(socket, &[IoSlice::new(&[])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Tells whether the daemon that the socket was connected to is there no more.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | NotConnected | BrokenPipe)
}

/// Tells whether the kernel would not make a datagram so large.
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
    fn a_datagram_that_the_kernel_finds_too_large_goes_as_a_file() {
        let (_dir, receiver, mut sender) = receiver();
        set_socket_send_buffer_size(&sender.socket, 4096).unwrap();
        let mut entry = EntryBuf::new();
        entry.push("A", &vec![b'x'; DATAGRAM_BYTES_MAX / 2]);
        sender.send(&entry).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_file_in_memory_is_sealed_as_every_journald_wants_it_and_not_executable() {
        let file = sealed(b"A\n").unwrap();
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&file).unwrap().st_mode);
        assert_eq!(mode, Mode::RUSR | Mode::WUSR);
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        assert_eq!(seals, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL);
    }

    #[test]
    fn the_memory_of_a_message_is_used_again() {
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
