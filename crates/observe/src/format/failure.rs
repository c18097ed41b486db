//! Causes of failed handshakes, from the words of OpenSSL and of the terminators.

use records::kinds::ConnectionOutcome;

/// Parts of what OpenSSL, nginx or HAProxy say, with the cause that they stand for. The first that fits counts.
const WORDS: [(&str, ConnectionOutcome); 22] = [
    ("unsupported protocol", ConnectionOutcome::Incompatible),
    ("version too low", ConnectionOutcome::Incompatible),
    ("no shared cipher", ConnectionOutcome::Incompatible),
    ("no suitable key share", ConnectionOutcome::Incompatible),
    ("no suitable signature algorithm", ConnectionOutcome::Incompatible),
    ("no shared signature algorithms", ConnectionOutcome::Incompatible),
    ("no application protocol", ConnectionOutcome::Incompatible),
    ("http request", ConnectionOutcome::NotTls),
    ("https proxy request", ConnectionOutcome::NotTls),
    ("wrong version number", ConnectionOutcome::NotTls),
    ("unknown protocol", ConnectionOutcome::NotTls),
    ("packet length too long", ConnectionOutcome::NotTls),
    (" alert ", ConnectionOutcome::HandshakeAlert),
    ("unexpected eof", ConnectionOutcome::HandshakeEof),
    ("peer closed connection", ConnectionOutcome::HandshakeEof),
    ("client closed connection", ConnectionOutcome::HandshakeEof),
    ("suddenly disconnected", ConnectionOutcome::HandshakeEof),
    ("Connection closed", ConnectionOutcome::HandshakeEof),
    ("Connection error", ConnectionOutcome::HandshakeEof),
    ("timed out", ConnectionOutcome::HandshakeTimeout),
    ("Timeout during", ConnectionOutcome::HandshakeTimeout),
    ("TIMEOUT", ConnectionOutcome::HandshakeTimeout),
];

/// The cause that these words stand for.
pub(super) fn outcome_of(words: &str) -> ConnectionOutcome {
    let found = WORDS.iter().find(|(part, _)| words.contains(part));
    found.map_or(ConnectionOutcome::HandshakeOther, |(_, outcome)| *outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_from_the_words_of_openssl() {
        for (words, outcome) in [
            ("error:0A000102:SSL routines::unsupported protocol", ConnectionOutcome::Incompatible),
            ("error:0A00009C:SSL routines::http request", ConnectionOutcome::NotTls),
            (
                "error:0A000418:SSL routines::tlsv1 alert unknown ca:SSL alert number 48",
                ConnectionOutcome::HandshakeAlert,
            ),
            ("Connection closed during SSL handshake", ConnectionOutcome::HandshakeEof),
            ("Timeout during SSL handshake", ConnectionOutcome::HandshakeTimeout),
            ("error:0A000001:SSL routines::something new", ConnectionOutcome::HandshakeOther),
        ] {
            assert_eq!(outcome_of(words), outcome, "{words}");
        }
    }
}
