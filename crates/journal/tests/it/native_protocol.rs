//! Checks the sender's datagrams with an independent parser of the native protocol.

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixDatagram;

use journal::{ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryBuf, EntryFault, SendError, Sender};
use proptest::prelude::*;
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

struct DatagramReceiver {
    socket: UnixDatagram,
    _dir: tempfile::TempDir,
}

impl DatagramReceiver {
    fn new() -> (Self, Sender) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let sender = Sender::open_at(&path).unwrap();
        (Self { socket, _dir: dir }, sender)
    }

    /// Returns the message, and the file if it was sent as one.
    fn take(&self) -> (Vec<u8>, Option<File>) {
        let mut bytes = vec![0; 1 << 20];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        bytes.truncate(received.bytes);
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                files.extend(received.map(File::from));
            }
        }
        assert!(files.len() <= 1);
        let Some(file) = files.pop() else { return (bytes, None) };
        assert!(bytes.is_empty(), "journald takes a file only with an empty datagram");
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        (bytes, Some(file))
    }

    fn is_empty(&self) -> bool {
        self.socket.recv(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// Parses one entry as the protocol's document describes: `NAME=value` on a line, or a name on a line, the
/// length in 64 bits, the value and a newline.
fn parse(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !bytes.is_empty() {
        let line_len = bytes.iter().position(|b| *b == b'\n').expect("a line ends");
        let (line, rest) = (&bytes[..line_len], &bytes[line_len + 1..]);
        assert!(!line.is_empty(), "an empty line would begin another entry");
        if let Some(equals) = line.iter().position(|b| *b == b'=') {
            fields.push((line[..equals].to_vec(), line[equals + 1..].to_vec()));
            bytes = rest;
        } else {
            let (length, rest) = rest.split_first_chunk().expect("a length");
            let (value, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            assert_eq!(rest[0], b'\n');
            fields.push((line.to_vec(), value.to_vec()));
            bytes = &rest[1..];
        }
    }
    fields
}

fn fields_of(entry: &EntryBuf) -> Fields {
    entry.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
}

/// Values that could confuse a parser, and random ones.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "(\n|=|A|B\n|\0|FORGED=1\n){0,8}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..300),
        (0usize..100_000, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn sent_entries_parse_back_field_by_field(
        fields in proptest::collection::vec(("[A-Z][A-Z0-9_]{0,63}", any_value()), 1..20)
    ) {
        let mut entry = EntryBuf::new();
        for (name, value) in &fields {
            entry.push(name, value);
        }
        prop_assume!(entry.fault().is_none());
        let (receiver, mut sender) = DatagramReceiver::new();
        sender.send(&entry).unwrap();
        prop_assert_eq!(parse(&receiver.take().0), fields_of(&entry));
        prop_assert!(receiver.is_empty());
    }
}

#[test]
fn only_large_entries_are_sent_as_sealed_files() {
    let (receiver, mut sender) = DatagramReceiver::new();
    for (value_len, is_file) in [(60_000, false), (70_000, true), (ENTRY_BYTES_MAX - 2, true), (1, false)] {
        let mut entry = EntryBuf::new();
        entry.push("A", &vec![b'\n'; value_len]);
        sender.send(&entry).unwrap();
        let (bytes, file) = receiver.take();
        assert_eq!(parse(&bytes), fields_of(&entry));
        assert_eq!(file.is_some(), is_file, "{value_len}");
        if let Some(file) = file {
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
            assert!(fcntl_get_seals(&file).unwrap().contains(seals));
        }
    }
}

#[test]
fn an_entry_with_the_most_fields_is_sent() {
    let (receiver, mut sender) = DatagramReceiver::new();
    let mut entry = EntryBuf::new();
    (0..ENTRY_FIELDS_MAX).for_each(|number| entry.push("A", &number.to_le_bytes()));
    sender.send(&entry).unwrap();
    assert_eq!(parse(&receiver.take().0), fields_of(&entry));
}

#[test]
fn entries_that_journald_would_not_accept_are_refused() {
    let (receiver, mut sender) = DatagramReceiver::new();
    let mut trusted = EntryBuf::new();
    trusted.push("MESSAGE", b"hello");
    trusted.push_trusted("_PID", b"1");
    let mut faulty = EntryBuf::new();
    faulty.push("MESSAGE", b"hello");
    faulty.push("lower", b"1");
    for (entry, expected) in [
        (trusted, EntryFault::FieldName("_PID".to_owned())),
        (faulty, EntryFault::FieldName("lower".to_owned())),
        (EntryBuf::new(), EntryFault::Empty),
    ] {
        let Err(SendError::Entry { fault, .. }) = sender.send(&entry) else { panic!("{entry:?} was sent") };
        assert_eq!(fault, expected);
        assert!(receiver.is_empty());
    }
}
