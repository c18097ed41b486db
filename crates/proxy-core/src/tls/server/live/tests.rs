use std::time::Duration;

use rustls::pki_types::pem::PemObject;

use super::*;
use crate::tls::testing::{TestKey, write};

#[test]
fn keys_that_another_process_has_too_are_not_rotated() {
    let mut tls = Tls::new(Certificate::generate(&[]).unwrap());
    // Always due. No configuration is made with it, since it is out of range.
    tls.settings.ticket_rotation = Duration::ZERO;
    let mut live = LiveTls::new(tls, false).unwrap();
    assert_eq!(live.hold_ticket_keys().len(), 1);
    live.take(FileChanges::default());
    assert_eq!(live.hold_ticket_keys().len(), 1);
    live.release_ticket_keys();
    live.take(FileChanges::default());
    assert_eq!(live.hold_ticket_keys().len(), 2);
}

#[test]
fn keys_never_show() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [TestKey::P256, TestKey::P384, TestKey::Ed25519, TestKey::Rsa] {
        let (cert, key) = write(folder.path(), "one", kind, &["a.test"]);
        let certificate = Certificate::load(&cert, &key).unwrap();
        let leaf = certificate.leaf_der().to_vec();
        let mut live = LiveTls::new(certificate.into(), false).unwrap();
        let config = live.config().unwrap();
        let der = rustls::pki_types::PrivateKeyDer::from_pem_file(&key).unwrap();
        let der = der.secret_der();
        for text in [format!("{live:?}"), format!("{config:?}"), format!("{live:#?}{config:#?}")] {
            // Also where it is a list of numbers over several lines.
            let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            assert!(text.contains("CertResolver") || text.contains("LiveTls"), "{text}");
            // The file of a key holds its public half too, and the certificate may show.
            let is_public = |part: &&[u8]| leaf.windows(part.len()).any(|window| window == *part);
            for part in der.chunks_exact(8).filter(|part| !is_public(part)) {
                let list = part.iter().fold(",".to_owned(), |list, byte| format!("{list}{byte},"));
                let hex = format!("{:016x}", u64::from_be_bytes(part.try_into().unwrap()));
                assert!(!text.contains(&list) && !text.contains(&hex), "{kind:?}");
            }
        }
    }
}
