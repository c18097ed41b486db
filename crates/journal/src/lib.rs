#![forbid(unsafe_code)]
//! Writes and follows systemd journal files, and sends to journald.
//!
//! [`FileWriter`] writes one `.journal` file in the documented [Journal File Format] (compact, keyed hash,
//! uncompressed) with positioned writes; `journalctl --file` reads it while it grows. [`Tail`] follows such a
//! file, journald's files, or whole folders, live and through rotations; the crate `systemd-journal-reader`
//! decodes compressed and binary values for it. [`Sender`] sends entries to journald. This crate handles
//! bytes and fields, and does not interpret them.
//!
//! ```no_run
//! use std::path::Path;
//! use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};
//!
//! let path = Path::new("/var/tmp/demo.journal");
//! let mut writer = FileWriter::create(path, FileOptions::default())?;
//! let mut entry = EntryBuf::new();
//! entry.push("MESSAGE", b"hello");
//! writer.append(&entry, Timestamps::now())?;
//! writer.flush()?;
//!
//! let mut tail = Tail::open(path, Start::File)?;
//! tail.poll(|entry| assert_eq!(entry.text("MESSAGE"), Some("hello")))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [Journal File Format]: https://systemd.io/JOURNAL_FILE_FORMAT/

mod archive;
mod entry;
mod entry_source;
mod error;
mod export;
mod hash;
mod instance;
mod layout;
mod position;
mod process;
mod regular_file;
mod sender;
mod tail;
mod writer;

pub use entry::{ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryBuf, EntryFault};
pub use entry_source::EntrySource;
pub use error::{ReadError, SendError, WriteError};
pub use instance::{InstanceError, JournaldInstance};
pub use layout::FileState;
pub use position::{EntryPosition, WriterPlaces, file_writer, last_entries};
pub use process::{Timestamps, process_fields};
pub use regular_file::open_regular;
pub use sender::Sender;
pub use tail::{Entry, PollProgress, Start, Tail};
pub use writer::{FileLoss, FileOptions, FileWriter};
