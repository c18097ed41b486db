//! Makes text from outside safe for journals, logs and terminals, once, where it enters.

/// Longest text from a peer that is kept, in characters.
pub const PEER_TEXT_MAX: usize = 255;
/// Longest line of our own, in characters: room for two paths of the greatest length.
pub const LINE_MAX: usize = 10_000;

/// Makes text from a peer or a file printable: control characters, and invisible characters that reorder or hide text
/// (Unicode bidirectional controls, zero-width characters), become `\u{…}` escapes. Text longer than [`PEER_TEXT_MAX`]
/// characters is then truncated. Text that was cleaned before does not change.
pub fn text(raw: &str) -> String {
    within(raw, PEER_TEXT_MAX)
}

/// Cleans a line of our own that quotes peers, paths or files, up to [`LINE_MAX`] characters.
pub fn line(raw: &str) -> String {
    within(raw, LINE_MAX)
}

fn within(raw: &str, chars_max: usize) -> String {
    let mut clean = String::with_capacity(raw.len().min(chars_max));
    for c in raw.chars().take(chars_max + 1) {
        if is_hazardous(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    let mut last_places = clean.char_indices().skip(chars_max - 1).map(|(place, _)| place);
    if let (Some(cut), Some(_)) = (last_places.next(), last_places.next()) {
        clean.truncate(cut);
        clean.push('…');
    }
    clean
}

/// Cleans bytes, which need not be UTF-8.
pub fn bytes(raw: &[u8]) -> String {
    // Twice the bound covers the longest UTF-8 sequences that can still matter after the cut.
    text(&String::from_utf8_lossy(&raw[..raw.len().min(PEER_TEXT_MAX * 4)]))
}

fn is_hazardous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_and_line_breaks_become_visible() {
        assert_eq!(text("a\u{1b}[2Jb\nTLSDASH_KIND=run"), "a\\u{1b}[2Jb\\u{a}TLSDASH_KIND=run");
        assert_eq!(text("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn text_cannot_be_reordered() {
        assert_eq!(text("abc\u{202e}fed"), "abc\\u{202e}fed");
    }

    #[test]
    fn long_and_binary_input_is_bounded() {
        for long in [text(&"\u{1}".repeat(100_000)), bytes(&vec![0xff; 100_000])] {
            assert_eq!(long.chars().count(), PEER_TEXT_MAX);
            assert!(long.ends_with('…'));
        }
        let longest = "ü".repeat(PEER_TEXT_MAX);
        assert_eq!(text(&longest), longest);
    }

    #[test]
    fn text_that_was_cleaned_stays_as_it_is() {
        // A record that was read is written again by who records it.
        for raw in ["\u{1b}".repeat(100), "a\n".repeat(200), "x".repeat(1000)] {
            let once = text(&raw);
            assert_eq!(text(&once), once);
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(text("www.exämple.org"), "www.exämple.org");
    }
}
