//! Certificates that are served.

use insta::assert_snapshot;
use records::kinds::{Body, CertificateRecord};

use crate::app::testing::{TestDashboard, options};
use crate::panes::PaneId;

/// 2026-01-02, the day of the made-up run, in seconds since 1970.
const TODAY: u64 = 1_767_312_000;
const DAY: u64 = 86_400;

/// A run with a certificate that ends soon, whose renewed file is refused, and one that does not.
pub(super) fn seen() -> TestDashboard {
    let mut stage = TestDashboard::live(options(), 3);
    let soon = CertificateRecord {
        fingerprint: "5b1e".to_owned(),
        file: "/etc/tls/www.pem".to_owned(),
        names: "www.example.org example.org".to_owned(),
        issuer: "Example CA".to_owned(),
        serial: "0a1b".to_owned(),
        key: "ECDSA P-256".to_owned(),
        chain: 2,
        chain_bytes: 2_048,
        not_before: TODAY - 85 * DAY,
        not_after: TODAY + 6 * DAY,
        since: TODAY,
        handshakes: 1_204,
        is_default: true,
        refusal: "the key is of another certificate".to_owned(),
        ..CertificateRecord::default()
    };
    let later = CertificateRecord {
        fingerprint: "77aa".to_owned(),
        names: "legacy.example.org".to_owned(),
        key: "RSA-2048".to_owned(),
        not_after: TODAY + 90 * DAY,
        must_staple: true,
        ..soon.clone()
    };
    let records = [later, soon].map(|record| stage.run.event(Body::Certificate(Box::new(record))));
    stage.read(records.into());
    stage.pass(1);
    stage
}

#[test]
fn certificates_have_a_line_each_and_a_box_of_details() {
    let mut stage = seen();
    let screen = stage.screen(160, 48);
    assert!(screen.contains("cert 6 days"), "{screen}");
    stage.want(crate::input::intent::Intent::Pane(crate::input::intent::PaneAction::Preset(
        crate::input::intent::Preset::Only(PaneId::Certificates),
    )));
    for (columns, rows) in [(80, 24), (160, 48)] {
        stage.screen(columns, rows);
        assert_snapshot!(format!("only_certificates_{columns}x{rows}"), stage.screen(columns, rows));
    }
    stage.press('\n');
    assert_snapshot!("certificate_80x24", stage.screen(80, 24));
}
