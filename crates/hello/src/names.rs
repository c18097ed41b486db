//! IANA's names of cipher suites and groups, and the words for alerts.

use std::borrow::Cow;

/// Cipher suites (IANA, TLS Cipher Suites) that servers of today may choose.
const SUITES: [(u16, &str); 36] = [
    (0x000a, "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
    (0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA"),
    (0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"),
    (0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA"),
    (0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
    (0x003c, "TLS_RSA_WITH_AES_128_CBC_SHA256"),
    (0x003d, "TLS_RSA_WITH_AES_256_CBC_SHA256"),
    (0x0067, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0x006b, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256"),
    (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    (0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x1305, "TLS_AES_128_CCM_8_SHA256"),
    (0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    (0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    (0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    (0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    (0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
    (0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM"),
    (0xc0ad, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM"),
    (0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8"),
    (0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

/// Groups (IANA, TLS Supported Groups).
const GROUPS: [(u16, &str); 15] = [
    (0x0017, "secp256r1"),
    (0x0018, "secp384r1"),
    (0x0019, "secp521r1"),
    (0x001d, "X25519"),
    (0x001e, "X448"),
    (0x0100, "ffdhe2048"),
    (0x0101, "ffdhe3072"),
    (0x0102, "ffdhe4096"),
    (0x0200, "MLKEM512"),
    (0x0201, "MLKEM768"),
    (0x0202, "MLKEM1024"),
    (0x11eb, "SecP256r1MLKEM768"),
    (0x11ec, "X25519MLKEM768"),
    (0x11ed, "SecP384r1MLKEM1024"),
    (0x6399, "X25519Kyber768Draft00"),
];

/// Alerts (RFC 8446, 6), in the words of IANA's names.
const ALERTS: [(u8, &str); 27] = [
    (0, "close notify"),
    (10, "unexpected message"),
    (20, "bad record MAC"),
    (22, "record overflow"),
    (40, "handshake failure"),
    (42, "bad certificate"),
    (43, "unsupported certificate"),
    (44, "certificate revoked"),
    (45, "certificate expired"),
    (46, "certificate unknown"),
    (47, "illegal parameter"),
    (48, "unknown CA"),
    (49, "access denied"),
    (50, "decode error"),
    (51, "decrypt error"),
    (70, "protocol version"),
    (71, "insufficient security"),
    (80, "internal error"),
    (86, "inappropriate fallback"),
    (90, "user canceled"),
    (100, "no renegotiation"),
    (109, "missing extension"),
    (110, "unsupported extension"),
    (112, "unrecognized name"),
    (113, "bad certificate status response"),
    (116, "certificate required"),
    (120, "no application protocol"),
];

/// Whether a name of a suite or group, in whatever case, is this one; rustls has a number in its names of TLS 1.3.
pub fn is_name(given: &str, known: &str) -> bool {
    given.to_ascii_uppercase().replacen("TLS13_", "TLS_", 1).eq_ignore_ascii_case(known)
}

/// The IANA name of a cipher suite; its number where it has none here.
pub fn suite_name(suite: u16) -> Cow<'static, str> {
    name(&SUITES, suite)
}

/// The IANA name of a group; its number where it has none here.
pub fn group_name(group: u16) -> Cow<'static, str> {
    name(&GROUPS, group)
}

fn name(names: &'static [(u16, &'static str)], number: u16) -> Cow<'static, str> {
    match names.iter().find(|&&(at, _)| at == number) {
        Some(&(_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("{number:#06x}")),
    }
}

/// The words for an alert's description; its number where it has none here.
pub fn alert_words(description: u8) -> Cow<'static, str> {
    match ALERTS.iter().find(|&&(at, _)| at == description) {
        Some(&(_, words)) => Cow::Borrowed(words),
        None => Cow::Owned(format!("alert {description}")),
    }
}
