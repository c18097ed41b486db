//! Versions, cipher suites, groups, application protocols: what is offered, and what never is.

use std::io::{Read, Write};

use records::metrics::ProxyCounter;
use records::setting::Value;

use crate::outside::{gnutls, has_echo, s_client};
use crate::pki::{P256, Pki};
use crate::support::{TLS13, TestProxy, TestUpstream, echo, serve_echo};
use rcgen::PKCS_RSA_SHA256 as RSA;

/// A proxy with an RSA and an ECDSA certificate.
fn start(served: &TestUpstream, pki: &Pki) -> TestProxy {
    pki.issue("rsa", &RSA, &["localhost"]);
    pki.issue("ecdsa", &P256, &["localhost"]);
    TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates = vec![pki.load("ecdsa"), pki.load("rsa")];
    })
}

/// Changes a setting, and waits until every worker has taken it up.
fn set(proxy: &mut TestProxy, name: &str, value: &str) {
    proxy.proxy.set(name, &Value::Text(value.into())).unwrap();
    proxy.collect();
}

#[test]
fn versions_can_be_narrowed_while_the_proxy_runs() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let mut proxy = start(&served, &pki);
    for (min, max, tls12, tls13) in
        [("1.2", "1.3", true, true), ("1.3", "1.3", false, true), ("1.2", "1.2", true, false)]
    {
        set(&mut proxy, "proxy.tls-max", "1.3");
        set(&mut proxy, "proxy.tls-min", min);
        set(&mut proxy, "proxy.tls-max", max);
        for (version, is_spoken) in [("-tls1_2", tls12), ("-tls1_3", tls13)] {
            let output = s_client(proxy.addr(), &[version]);
            assert_eq!(has_echo(&output), is_spoken, "{min} to {max}, {version}: {output}");
            assert!(is_spoken || output.contains("protocol version"), "{output}");
        }
    }
}

#[test]
fn contradictory_settings_are_refused_and_change_nothing() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&served, &pki).proxy;
    proxy.set("proxy.tls-max", &Value::Text("1.2".into())).unwrap();
    for (name, value, part) in [
        ("proxy.tls-min", "1.3", "later than"),
        ("proxy.tls-max", "1.4", "known: 1.2, 1.3"),
        ("proxy.ciphers", "TLS_AES_128_GCM_SHA256", "TLS 1.2"),
        ("proxy.groups", "x448", "known: x25519"),
        ("proxy.certificate", "none", "files"),
    ] {
        let error = proxy.set(name, &Value::Text(value.into())).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(name), "{error}");
    }
    let error = proxy.set("proxy.ticket-rotation", &Value::Number(60.0)).unwrap_err().to_string();
    assert!(error.contains("thirtieth"), "{error}");
    let value = |name: &str| proxy.settings().into_iter().find(|setting| setting.name == name).unwrap().value;
    assert_eq!(value("proxy.tls-min"), Value::Text("1.2".into()));
    assert!(value("proxy.ciphers").to_string().starts_with("TLS_AES_128_GCM_SHA256,"));
    assert_eq!(value("proxy.ticket-rotation"), Value::Number(21600.0));
}

#[test]
fn cipher_suites_are_those_that_are_named_in_that_order() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let mut proxy = start(&served, &pki);
    let both = ["-ciphersuites", "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"];
    let output = s_client(proxy.addr(), &both);
    assert!(output.contains("Cipher is TLS_AES_128_GCM_SHA256"), "the proxy's order: {output}");
    set(&mut proxy, "proxy.cipher-order", "client");
    let output = s_client(proxy.addr(), &both);
    assert!(output.contains("Cipher is TLS_AES_256_GCM_SHA384"), "the client's order: {output}");
    set(&mut proxy, "proxy.cipher-order", "proxy");
    let named = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
    set(&mut proxy, "proxy.ciphers", named);
    let output = s_client(proxy.addr(), &["-ciphersuites", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"]);
    assert!(output.contains("Cipher is TLS_AES_256_GCM_SHA384"), "the order of the list: {output}");
    let output = s_client(proxy.addr(), &["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"]);
    assert!(!has_echo(&output), "{output}");
    // Only an RSA suite is left for TLS 1.2, so that only the RSA certificate will do.
    let output = s_client(proxy.addr(), &["-tls1_2"]);
    assert!(output.contains("Cipher is ECDHE-RSA-AES256-GCM-SHA384") && has_echo(&output), "{output}");
}

#[test]
fn groups_are_those_that_are_named() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let mut proxy = start(&served, &pki);
    let groups = [
        ("X25519", "x25519", "Server Temp Key: X25519, 253 bits"),
        ("P-256", "secp256r1", "Server Temp Key: ECDH, prime256v1, 256 bits"),
        ("P-384", "secp384r1", "Server Temp Key: ECDH, secp384r1, 384 bits"),
    ];
    for (asked, _, used) in groups {
        let output = s_client(proxy.addr(), &["-groups", asked]);
        assert!(has_echo(&output) && output.contains(used), "{output}");
    }
    for (asked, named, _) in groups {
        set(&mut proxy, "proxy.groups", named);
        for (other, ..) in groups {
            // For TLS 1.2 OpenSSL takes the groups for the curves of certificates too, of which RSA has none.
            for version in ["-tls1_2", "-tls1_3"] {
                let rsa = ["-cipher", "ECDHE-RSA-AES128-GCM-SHA256"];
                let output = s_client(proxy.addr(), &[&[version, "-groups", other][..], &rsa].concat());
                assert_eq!(has_echo(&output), asked == other, "{named} {other} {version}: {output}");
            }
        }
    }
    set(&mut proxy, "proxy.groups", "x25519mlkem768");
    echo(&mut proxy.connect(&pki.client(&TLS13, None).into()), b"hello");
    proxy.expect(ProxyCounter::GroupMlkem, 1);
}

#[test]
fn an_application_protocol_can_be_offered_while_the_proxy_runs() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let mut proxy = start(&served, &pki);
    let output = s_client(proxy.addr(), &["-alpn", "h2,http/1.1"]);
    assert!(output.contains("No ALPN negotiated"), "{output}");
    set(&mut proxy, "proxy.alpn", "http/1.1,h2");
    let output = s_client(proxy.addr(), &["-alpn", "h2,http/1.1"]);
    assert!(output.contains("ALPN protocol: http/1.1"), "{output}");
    let output = s_client(proxy.addr(), &["-alpn", "spdy/3"]);
    assert!(!has_echo(&output) && output.contains("no application protocol"), "{output}");
}

/// A `ClientHello` of TLS 1.2 that offers `suites`, with all curves and signatures one could wish for.
fn hello(suites: &[u16]) -> Vec<u8> {
    let u16s = |numbers: &[u16]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let with_length = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let extension = |number: u16, bytes: &[u8]| [u16s(&[number]), with_length(bytes)].concat();
    let signatures = [0x0403, 0x0503, 0x0804, 0x0805, 0x0401, 0x0501, 0x0601, 0x0201, 0x0203, 0x0202];
    let extensions = [
        extension(10, &with_length(&u16s(&[29, 23, 24, 25]))),
        extension(11, &[1, 0]),
        extension(13, &with_length(&u16s(&signatures))),
    ];
    let body = [
        vec![3, 3],
        vec![7; 32],
        vec![0],
        with_length(&u16s(suites)),
        vec![1, 0],
        with_length(&extensions.concat()),
    ]
    .concat();
    let handshake = [&[1, 0], &(body.len() as u16).to_be_bytes()[..], &body].concat();
    [&[22, 3, 1][..], &with_length(&handshake)].concat()
}

/// The suite that the proxy chooses, or the alert that it sends.
fn chosen(proxy: &TestProxy, suites: &[u16]) -> Result<u16, u8> {
    let mut tcp = proxy.tcp();
    tcp.write_all(&hello(suites)).unwrap();
    let mut header = [0; 5];
    tcp.read_exact(&mut header).unwrap();
    let mut record = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    tcp.read_exact(&mut record).unwrap();
    match header[0] {
        21 => Err(record[1]),
        // Behind type, length, version and random stands the session's id, and then the suite.
        22 => {
            let at = 39 + usize::from(record[38]);
            Ok(u16::from_be_bytes([record[at], record[at + 1]]))
        }
        other => panic!("a record of type {other}"),
    }
}

#[test]
fn nothing_obsolete_is_ever_negotiated() {
    const HANDSHAKE_FAILURE: u8 = 40;
    // ECDHE with AES-GCM or ChaCha20-Poly1305, for ECDSA and RSA.
    const SUITES: [u16; 6] = [0xc02b, 0xc02c, 0xcca9, 0xc02f, 0xc030, 0xcca8];
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&served, &pki);
    for suite in SUITES {
        assert_eq!(chosen(&proxy, &[suite]), Ok(suite));
    }
    // Whatever was ever registered for TLS 1.2 and before, with NULL, export, RC4, 3DES, CBC, anonymous, static RSA
    // and static or finite Diffie-Hellman among it; first all at once, then each part of it.
    let registered = (0x0000..=0x00c7).chain(0xc001..=0xc0b5).chain(0xccaa..=0xccae).chain(0xd001..=0xd005);
    let others: Vec<u16> = registered.filter(|suite| !SUITES.contains(suite)).collect();
    assert_eq!(chosen(&proxy, &others), Err(HANDSHAKE_FAILURE));
    for part in others.chunks(64) {
        assert_eq!(chosen(&proxy, part), Err(HANDSHAKE_FAILURE));
    }
}

#[test]
fn gnutls_is_served_and_refused_what_is_obsolete() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&served, &pki);
    for (priority, is_served) in [
        ("NORMAL", true),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.2", true),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-SECP384R1", true),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0", false),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", false),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC", false),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+3DES-CBC", false),
        ("NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+ARCFOUR-128", false),
    ] {
        let output = gnutls(proxy.addr(), priority);
        assert_eq!(has_echo(&output), is_served, "{priority}: {output}");
        assert!(is_served || output.contains("alert"), "{priority}: {output}");
    }
}
