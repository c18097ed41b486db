//! The Journal Export Format, in which systemd-journal-upload sends entries.
//!
//! Source: the systemd project's document "Journal Export Formats".

use crate::Entry;

impl Entry {
    /// Appends the entry in the Journal Export Format.
    pub fn export(&self, bytes: &mut Vec<u8>) {
        let mut number = |name, value: u64| append_field(name, value.to_string().as_bytes(), bytes);
        number("__REALTIME_TIMESTAMP", self.realtime_us());
        number("__MONOTONIC_TIMESTAMP", self.monotonic_us());
        if self.text("_BOOT_ID").is_none() {
            append_field("_BOOT_ID", format!("{:032x}", self.boot_id()).as_bytes(), bytes);
        }
        for (name, value) in self.iter() {
            append_field(name, value, bytes);
        }
        bytes.push(b'\n');
    }
}

fn append_field(name: &str, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(name.as_bytes());
    if is_text(value) {
        bytes.push(b'=');
    } else {
        bytes.push(b'\n');
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    }
    bytes.extend_from_slice(value);
    bytes.push(b'\n');
}

/// Returns whether a value may be written as text: UTF-8 without control characters other than tabs.
fn is_text(value: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    !value.iter().any(is_control) && std::str::from_utf8(value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_exported_as_text_and_what_is_no_text_with_its_length() {
        let fields =
            [("A", "1=2\tä"), ("_BOOT_ID", "d27b8501be984d02a15d65fffc6d18d5"), ("B", "x\ny"), ("C", "")];
        let mut bytes = Vec::new();
        Entry::from_fields(7, fields).export(&mut bytes);
        let expected = "__REALTIME_TIMESTAMP=7\n__MONOTONIC_TIMESTAMP=0\nA=1=2\tä\n\
             _BOOT_ID=d27b8501be984d02a15d65fffc6d18d5\nB\n\x03\0\0\0\0\0\0\0x\ny\nC=\n\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
