//! Reads any bytes as the ticket keys that another process leaves: nothing panics, and what is read is within its bounds.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_core::TicketKeySnapshot;
use zeroize::Zeroizing;

/// A line that names the format; an age and 80 bytes for each key.
const FORMAT: &[u8] = b"tlsdash ticket keys 1\n";
const ENTRY_BYTES: usize = 88;

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    if let Ok(keys) = TicketKeySnapshot::parse(Zeroizing::new(input.to_vec())) {
        assert_eq!(keys.as_bytes(), input);
        assert!((1..=32).contains(&keys.len()) && input.len() <= TicketKeySnapshot::BYTES_MAX);
        assert_eq!(input.len(), FORMAT.len() + keys.len() * ENTRY_BYTES);
    }
});

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for count in [1_u8, 2, 32, 33] {
        let mut seed = FORMAT.to_vec();
        for key in 0..count {
            seed.extend_from_slice(&(u64::from(key) * 3_600_000).to_be_bytes());
            seed.extend((0..80_u8).map(|byte| byte.wrapping_mul(7).wrapping_add(key)));
        }
        std::fs::write(folder.join(count.to_string()), seed)?;
    }
    Ok(())
}
