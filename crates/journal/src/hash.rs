//! The two hash functions of the journal file format.

use siphasher::sip::SipHasher24;

/// Hashes a payload for the hash tables of a file: siphash24, keyed with the file id.
pub(crate) fn keyed(file_id: u128, payload: &[u8]) -> u64 {
    SipHasher24::new_with_key(&file_id.to_be_bytes()).hash(payload)
}

/// Hashes a payload with Bob Jenkins' lookup3 (`hashlittle2`); its first result is the upper 32 bits.
///
/// An entry's `xor_hash` uses this function, whichever one the hash tables of the file use.
pub(crate) fn jenkins(payload: &[u8]) -> u64 {
    let start = 0xdead_beef_u32.wrapping_add(payload.len() as u32);
    let mut state = [start; 3];
    // The last block is mixed differently. It is full if the length is a multiple of twelve.
    let blocks = payload.len().saturating_sub(1) / 12;
    let (full, last) = payload.split_at(blocks * 12);
    for block in full.chunks_exact(12) {
        add(&mut state, block);
        mix(&mut state);
    }
    if !last.is_empty() {
        add(&mut state, last);
        finish(&mut state);
    }
    u64::from(state[2]) << 32 | u64::from(state[1])
}

/// Adds a block of at most twelve bytes to the state, as three little-endian words padded with zeros.
fn add(state: &mut [u32; 3], block: &[u8]) {
    let mut padded = [0; 12];
    padded[..block.len()].copy_from_slice(block);
    for (word, bytes) in state.iter_mut().zip(padded.chunks_exact(4)) {
        *word = word.wrapping_add(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    }
}

/// The function `mix` of lookup3.
fn mix(state: &mut [u32; 3]) {
    for (step, rotation) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        // Each step rotates the roles of the three words.
        let (first, second, third) = (step % 3, (step + 1) % 3, (step + 2) % 3);
        state[first] = state[first].wrapping_sub(state[third]) ^ state[third].rotate_left(rotation);
        state[third] = state[third].wrapping_add(state[second]);
    }
}

/// The function `final` of lookup3.
fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    *state = [a, b, c];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jenkins_matches_the_published_lookup3_vectors() {
        // From the self-test `driver5` of lookup3.c, which prints (c, b).
        assert_eq!(jenkins(b""), 0xdead_beef_dead_beef);
        assert_eq!(jenkins(b"Four score and seven years ago"), 0x1777_0551_ce72_26e6);
    }

    #[test]
    fn keyed_matches_the_published_siphash24_vectors() {
        // From the appendix of the SipHash paper: key 00 01 … 0f, message 00 01 … 0e.
        let key = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(keyed(key, &message), 0xa129_ca61_49be_45e5);
    }
}
