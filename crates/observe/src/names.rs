//! Names of TLS parameters: terminators write OpenSSL's, records have IANA's.

use std::borrow::Cow;

/// OpenSSL's names of groups, and the numbers that it writes for those without one, with their IANA names.
const GROUPS: [(&str, &str); 7] = [
    ("prime256v1", "secp256r1"),
    ("P-256", "secp256r1"),
    ("P-384", "secp384r1"),
    ("P-521", "secp521r1"),
    ("x25519", "X25519"),
    ("0x001d", "X25519"),
    ("0x11ec", "X25519MLKEM768"),
];

/// The IANA name of a group.
pub(crate) fn group(name: &str) -> &str {
    GROUPS.iter().find(|(openssl, _)| *openssl == name).map_or(name, |(_, iana)| iana)
}

/// The IANA name of a cipher suite: that of TLS 1.2's suites with ECDHE and an AEAD is made from OpenSSL's, others stay.
pub(crate) fn cipher(name: &str) -> Cow<'_, str> {
    let Some((signature, rest)) = name.strip_prefix("ECDHE-").and_then(|rest| rest.split_once('-')) else {
        return Cow::Borrowed(name);
    };
    let algorithm = match rest {
        "AES128-GCM-SHA256" => "AES_128_GCM_SHA256",
        "AES256-GCM-SHA384" => "AES_256_GCM_SHA384",
        "CHACHA20-POLY1305" => "CHACHA20_POLY1305_SHA256",
        _ => return Cow::Borrowed(name),
    };
    Cow::Owned(format!("TLS_ECDHE_{signature}_WITH_{algorithm}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_openssl_become_those_of_iana() {
        assert_eq!(cipher("ECDHE-ECDSA-CHACHA20-POLY1305"), "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
        assert_eq!(cipher("ECDHE-RSA-AES128-GCM-SHA256"), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        assert_eq!(cipher("AES128-SHA"), "AES128-SHA");
        assert_eq!((group("prime256v1"), group("0x11ec")), ("secp256r1", "X25519MLKEM768"));
    }
}
