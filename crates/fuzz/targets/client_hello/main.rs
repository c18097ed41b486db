//! Hands any bytes to TLS as the first of a client's, whole and in pieces: nothing panics, nothing is kept beyond its
//! bound, nobody who cannot know the key shakes hands, and pieces lead to what the whole leads to, also in what is read of
//! the `ClientHello` beside rustls.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_core::{Certificate, TlsHarness};

/// What is kept of messages that are not whole, in bytes at most.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Type of a record with an alert (RFC 8446, 5.1).
const ALERT: u8 = 21;

static HARNESS: LazyLock<TlsHarness> = LazyLock::new(|| {
    let certificate = Certificate::generate(&["example.org".to_owned()]).expect("a certificate");
    TlsHarness::new(certificate).expect("TLS with default settings")
});

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&step, hello)) = input.split_first() else { return };
    let whole = HARNESS.receive([hello]);
    let pieces = HARNESS.receive(hello.chunks(usize::from(step) * 8 + 1));
    for outcome in [&whole, &pieces] {
        assert!(!outcome.is_handshake_complete && outcome.plaintext_bytes == 0, "{outcome:?}");
        assert!(outcome.kept_bytes_max <= KEPT_BYTES_MAX, "{outcome:?}");
        let says_why = outcome.output.is_empty() || has_alert(&outcome.output) || is_silent(outcome.failure.as_deref());
        assert!(outcome.failure.is_none() || says_why, "{outcome:?}");
    }
    assert_eq!(whole.failure.is_some(), pieces.failure.is_some(), "{whole:?} {pieces:?}");
    // Bytes behind what rustls refuses are only looked at if they come with it.
    if whole.failure.is_none() {
        assert_eq!(whole.hello, pieces.hello, "{whole:?} {pieces:?}");
    }
    let is_fingerprint = |text: &str| text.is_empty() || (text.len() == 36 && text.is_ascii() && text.starts_with('t'));
    assert!(whole.hello.is_none_or(|(_, fingerprint)| is_fingerprint(&fingerprint)));
});

/// Of a handshake message that says to be too long rustls sends no alert.
fn is_silent(failure: Option<&str>) -> bool {
    failure.is_some_and(|failure| failure.contains("HandshakePayloadTooLarge"))
}

/// Whether records of `output` end with an alert, openly or, where keys are agreed upon, sealed.
fn has_alert(mut output: &[u8]) -> bool {
    let mut last = 0;
    while let Some((header, rest)) = output.split_first_chunk::<5>() {
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let Some(behind) = rest.get(len..) else { return false };
        (last, output) = (header[0], behind);
    }
    output.is_empty() && [ALERT, 23].contains(&last)
}

/// Writes what the tests have recorded of OpenSSL and `GnuTLS`, each to be read whole and in small pieces.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let hellos = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/client_hello/hellos");
    for hello in std::fs::read_dir(hellos)? {
        let hello = hello?;
        let bytes = std::fs::read(hello.path())?;
        for step in [0, 5, 255] {
            let name = format!("{}-{step}", hello.file_name().display());
            std::fs::write(folder.join(name), [&[step], &bytes[..]].concat())?;
        }
    }
    Ok(())
}
