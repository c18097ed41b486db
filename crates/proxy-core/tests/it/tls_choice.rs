//! Which certificate a client gets, as OpenSSL sees it.

use crate::outside::{has_echo, s_client};
use crate::pki::{P256, Pki};
use crate::support::{TestProxy, TestUpstream, serve_echo};
use rcgen::PKCS_RSA_SHA256 as RSA;

fn serving(served: &TestUpstream, certificates: Vec<proxy_core::Certificate>) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| config.tls.certificates = certificates)
}

#[test]
fn the_name_asked_for_chooses_the_certificate() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let of = |names: &[&str]| pki.certificate(&P256, names);
    let proxy = serving(
        &served,
        vec![of(&["first.test"]), of(&["*.wild.test"]), of(&["www.wild.test", "second.test"])],
    );
    let ca = pki.text("ca.pem");
    for (name, subject) in [
        ("first.test", "first.test"),
        ("api.wild.test", "*.wild.test"),
        ("www.wild.test", "www.wild.test"),
        ("WWW.Wild.Test", "www.wild.test"),
        ("second.test", "www.wild.test"),
        ("unknown.test", "first.test"),
    ] {
        let output = s_client(proxy.addr(), &["-servername", name, "-CAfile", &ca]);
        assert!(has_echo(&output), "{name}: {output}");
        assert!(output.contains(&format!("subject=CN = {subject}\n")), "{name}: {output}");
        assert!(output.contains("Verify return code: 0 (ok)"), "{name}: {output}");
    }
    let output = s_client(proxy.addr(), &["-noservername"]);
    assert!(output.contains("subject=CN = first.test\n"), "{output}");
}

#[test]
fn rsa_and_ecdsa_for_one_name_are_chosen_by_what_the_client_can_verify() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("rsa", &RSA, &["both.test"]);
    pki.issue("ecdsa", &P256, &["both.test"]);
    let proxy = serving(&served, vec![pki.load("rsa"), pki.load("ecdsa")]);
    for (arguments, signature) in [
        (&["-tls1_3"][..], "ECDSA"),
        (&["-tls1_3", "-sigalgs", "RSA-PSS+SHA256:ECDSA+SHA256"], "ECDSA"),
        // Without a scheme for certificates of its own, OpenSSL needs the one the authority signs with.
        (&["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"], "RSA-PSS"),
        (&["-tls1_2"], "ECDSA"),
        (&["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], "RSA-PSS"),
        (&["-tls1_2", "-sigalgs", "RSA+SHA256"], "RSA"),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], "ECDSA"),
    ] {
        for name in [&["-servername", "both.test"][..], &["-noservername"]] {
            let output = s_client(proxy.addr(), &[arguments, name].concat());
            assert!(has_echo(&output), "{arguments:?}: {output}");
            assert!(
                output.contains(&format!("Peer signature type: {signature}\n")),
                "{arguments:?}: {output}"
            );
        }
    }
}

#[test]
fn a_client_that_can_verify_none_is_refused() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let mut proxy = serving(&served, vec![pki.certificate(&P256, &["a.test"])]);
    let output = s_client(proxy.addr(), &["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"]);
    assert!(!has_echo(&output) && output.contains("handshake failure"), "{output}");
    proxy.expect(records::metrics::ProxyCounter::FailedIncompatible, 1);
}
