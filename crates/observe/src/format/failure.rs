//! Causes of failed handshakes, from the words of OpenSSL and of the terminators.

use telemetry::Outcome;

/// Parts of what OpenSSL, nginx or HAProxy say, with the cause that they stand for. The first that fits counts.
const WORDS: [(&str, Outcome); 20] = [
    ("unsupported protocol", Outcome::Incompatible),
    ("version too low", Outcome::Incompatible),
    ("no shared cipher", Outcome::Incompatible),
    ("no suitable key share", Outcome::Incompatible),
    ("no suitable signature algorithm", Outcome::Incompatible),
    ("no shared signature algorithms", Outcome::Incompatible),
    ("no application protocol", Outcome::Incompatible),
    ("http request", Outcome::NotTls),
    ("https proxy request", Outcome::NotTls),
    ("wrong version number", Outcome::NotTls),
    ("unknown protocol", Outcome::NotTls),
    ("packet length too long", Outcome::NotTls),
    (" alert ", Outcome::HandshakeAlert),
    ("unexpected eof", Outcome::HandshakeEof),
    ("peer closed connection", Outcome::HandshakeEof),
    ("client closed connection", Outcome::HandshakeEof),
    ("Connection closed", Outcome::HandshakeEof),
    ("Connection error", Outcome::HandshakeEof),
    ("timed out", Outcome::HandshakeTimeout),
    ("Timeout during", Outcome::HandshakeTimeout),
];

/// The cause that these words stand for.
pub(super) fn outcome_of(words: &str) -> Outcome {
    let found = WORDS.iter().find(|(part, _)| words.contains(part));
    found.map_or(Outcome::HandshakeOther, |(_, outcome)| *outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_from_the_words_of_openssl() {
        for (words, outcome) in [
            ("error:0A000102:SSL routines::unsupported protocol", Outcome::Incompatible),
            ("error:0A00009C:SSL routines::http request", Outcome::NotTls),
            (
                "error:0A000418:SSL routines::tlsv1 alert unknown ca:SSL alert number 48",
                Outcome::HandshakeAlert,
            ),
            ("Connection closed during SSL handshake", Outcome::HandshakeEof),
            ("Timeout during SSL handshake", Outcome::HandshakeTimeout),
            ("error:0A000001:SSL routines::something new", Outcome::HandshakeOther),
        ] {
            assert_eq!(outcome_of(words), outcome, "{words}");
        }
    }
}
