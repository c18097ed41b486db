//! Where objects lie in the stream that the reader gets, if that is not where they lie in the file.

use crate::layout::u64_at;

/// Where the items of an ENTRY object begin.
pub(super) const ENTRY_ITEMS_AT: usize = 64;

/// How much further on in the stream things lie than in the file.
#[derive(Debug, Default)]
pub(super) struct Shifts {
    /// From which offset in the file on, and how far; in order.
    parts: Vec<(u64, i64)>,
}

impl Shifts {
    /// Shifts what lies in the file from `offset` on, which is behind all that was shifted before, by `growth` more.
    pub(super) fn grow(&mut self, offset: u64, growth: i64) {
        let before = self.parts.last().map_or(0, |(_, shift)| *shift);
        self.parts.push((offset, before + growth));
    }

    /// Lets the items of an entry say where values lie in the stream, rather than in the file.
    pub(super) fn apply(&self, entry: &mut [u8], is_compact: bool) {
        if self.parts.is_empty() {
            return;
        }
        // What follows the last item, at most padding, is not looked at by the reader either.
        let items = &mut entry[ENTRY_ITEMS_AT..];
        if is_compact {
            for item in items.chunks_exact_mut(4) {
                let offset = u32::from_le_bytes([item[0], item[1], item[2], item[3]]);
                // The reader has nothing at offset 0: files above 3.7 GiB could lose fields there.
                let shifted = u32::try_from(self.in_stream(offset.into())).unwrap_or_default();
                item.copy_from_slice(&shifted.to_le_bytes());
            }
        } else {
            for item in items.chunks_exact_mut(16) {
                let shifted = self.in_stream(u64_at(item, 0));
                item[..8].copy_from_slice(&shifted.to_le_bytes());
            }
        }
    }

    fn in_stream(&self, offset: u64) -> u64 {
        let later = self.parts.partition_point(|(from, _)| *from <= offset);
        let shift = later.checked_sub(1).map_or(0, |last| self.parts[last].1);
        offset.wrapping_add_signed(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_follow_what_they_point_to() {
        let mut shifts = Shifts::default();
        let compact = |offsets: &[u32]| {
            let mut entry = vec![0xee; ENTRY_ITEMS_AT];
            entry.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
            entry
        };
        let mut entry = compact(&[96, 200]);
        shifts.apply(&mut entry, true);
        assert_eq!(entry, compact(&[96, 200]));

        shifts.grow(200, 1000);
        shifts.grow(400, -8);
        let mut entry = compact(&[96, 200, 399, 400, 5000, u32::MAX]);
        shifts.apply(&mut entry, true);
        assert_eq!(entry, compact(&[96, 1200, 1399, 1392, 5992, 0]));

        let mut entry = vec![0xee; ENTRY_ITEMS_AT + 32];
        entry[64..72].copy_from_slice(&399_u64.to_le_bytes());
        entry[80..88].copy_from_slice(&u64::MAX.to_le_bytes());
        shifts.apply(&mut entry, false);
        assert_eq!(u64_at(&entry, 64), 1399);
        assert_eq!(u64_at(&entry, 72), u64::from_le_bytes([0xee; 8]), "the hash of an item stays");
    }
}
