//! The text of a request's target. Clients send `"`, `<`, `>` and a backtick unencoded, and servers take them, although no
//! URI has them (RFC 3986): the proxy forwards them as received. `http::Uri` refuses them, so hyper gets another character
//! in their place.

/// Longest path with its query that `http::Uri` takes.
pub(crate) const PATH_BYTES_MAX: usize = 65_534;
/// Stands for a character that `http::Uri` refuses.
const STAND_IN: u8 = b'_';

/// Whether `http::Uri` certainly takes a path with its query as it is.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    let is_plain =
        |byte: &u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'_' | b'a'..=b'z' | b'{'..=b'~');
    path.first() == Some(&b'/') && path.len() <= PATH_BYTES_MAX && path.iter().all(is_plain)
}

/// A path with its query as hyper gets it; `None` if that is how it was received.
pub(crate) fn stand_in(path: &[u8]) -> Option<Box<[u8]>> {
    let is_odd = |byte: u8| matches!(byte, b'"' | b'<' | b'>' | b'`');
    let has_odd = path.first() == Some(&b'/') && path.iter().any(|byte| is_odd(*byte));
    has_odd.then(|| path.iter().map(|byte| if is_odd(*byte) { STAND_IN } else { *byte }).collect())
}

/// A path without the query.
pub(crate) fn without_query(path: &str) -> &str {
    // A path is too short for a search that sets out to be fast.
    path.bytes().position(|byte| byte == b'?').map_or(path, |at| &path[..at])
}

#[cfg(test)]
mod tests {
    use hyper::http::uri::PathAndQuery;

    use super::*;

    #[test]
    fn hyper_takes_every_character_of_ascii_that_clients_send_or_a_stand_in() {
        for byte in 0..=255_u8 {
            for path in [vec![b'/', byte], vec![b'/', b'?', byte]] {
                let (is_plain, cleaned) = (is_plain(&path), stand_in(&path));
                let is_taken = PathAndQuery::try_from(cleaned.as_deref().unwrap_or(&path)).is_ok();
                assert!(is_taken || !is_plain, "{byte:#x}");
                assert_eq!(cleaned.is_some(), b"\"<>`".contains(&byte), "{byte:#x}");
                assert_eq!(is_taken, byte.is_ascii_graphic(), "{byte:#x}");
            }
        }
        assert!(!is_plain(b"") && !is_plain(b"a") && stand_in(b"a<").is_none());
        assert!(!is_plain(&vec![b'/'; PATH_BYTES_MAX + 1]));
    }
}
