//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length, and from each length to the next, ascend in the order of their symbols.
//! So the lengths define the code, and all tables are computed from them at compile time.

use super::HpackError;

/// Bits of the code of each byte, and at last of the end of a string, which must not occur in one.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];
const SYMBOLS: usize = 257;
const END_OF_STRING: u16 = 256;
const LONGEST: usize = 30;

/// Codes up to this many bits are decoded with one lookup: letters, digits and most punctuation.
const SHORT_BITS: usize = 10;

/// Tables computed from the lengths of the codes.
struct HuffmanTables {
    /// The code of each symbol.
    codes: [u32; SYMBOLS],
    /// Symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    /// For each length, the first code that is longer, cut to this length.
    limits: [u32; LONGEST + 1],
    /// For each length, what its codes are ahead of their place in `sorted`.
    ahead: [u32; LONGEST + 1],
    /// For the next bits of the input, the symbol and length of a short code; a length of 0 for longer codes.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static TABLES: HuffmanTables = HuffmanTables::new();

impl HuffmanTables {
    const fn new() -> Self {
        let mut tables = Self {
            codes: [0; SYMBOLS],
            sorted: [0; SYMBOLS],
            limits: [0; LONGEST + 1],
            ahead: [0; LONGEST + 1],
            short: [(0, 0); 1 << SHORT_BITS],
        };
        let (mut code, mut place, mut length) = (0_u32, 0, 1);
        while length <= LONGEST {
            code <<= 1;
            tables.ahead[length] = code - place as u32;
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if LENGTHS[symbol] as usize == length {
                    tables.codes[symbol] = code;
                    tables.sorted[place] = symbol as u16;
                    if length <= SHORT_BITS {
                        let rest = SHORT_BITS - length;
                        let mut at = (code as usize) << rest;
                        while at < (code as usize + 1) << rest {
                            tables.short[at] = (symbol as u8, length as u8);
                            at += 1;
                        }
                    }
                    code += 1;
                    place += 1;
                }
                symbol += 1;
            }
            tables.limits[length] = code;
            length += 1;
        }
        tables
    }
}

/// Decodes a string, and appends it to `out`.
pub(super) fn decode(mut input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    // No code is shorter than five bits.
    out.reserve(input.len() * 8 / 5);
    // The bits not decoded yet are at the upper end.
    let (mut bits, mut count) = (0_u64, 0_usize);
    loop {
        if count < LONGEST {
            if let Some((four, rest)) = input.split_first_chunk::<4>() {
                bits |= u64::from(u32::from_be_bytes(*four)) << (32 - count);
                (count, input) = (count + 32, rest);
            } else {
                for byte in input {
                    bits |= u64::from(*byte) << (56 - count);
                    count += 8;
                }
                input = &[];
            }
        }
        let (symbol, length) = match TABLES.short[(bits >> (64 - SHORT_BITS)) as usize] {
            (_, 0) => long(bits)?,
            (symbol, length) => (symbol, usize::from(length)),
        };
        if length > count {
            break;
        }
        out.push(symbol);
        bits <<= length;
        count -= length;
    }
    // The rest is padding, the first bits of the end of a string (RFC 7541, section 5.2).
    let is_padding = count < 8 && bits.leading_ones() as usize >= count;
    if is_padding { Ok(()) } else { Err(HpackError) }
}

/// The symbol of a code that is not short, and its length.
fn long(bits: u64) -> Result<(u8, usize), HpackError> {
    for length in SHORT_BITS + 1..=LONGEST {
        let code = (bits >> (64 - length)) as u32;
        if code < TABLES.limits[length] {
            let symbol = TABLES.sorted[(code - TABLES.ahead[length]) as usize];
            return if symbol == END_OF_STRING { Err(HpackError) } else { Ok((symbol as u8, length)) };
        }
    }
    Err(HpackError)
}

/// Length of a string once it is encoded.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Encodes a string, and appends it to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for byte in text {
        let (code, length) = (TABLES.codes[usize::from(*byte)], LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(code);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    proptest! {
        #[test]
        fn decoding_returns_what_was_encoded(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut encoded = Vec::new();
            encode(&text, &mut encoded);
            prop_assert_eq!(encoded.len(), encoded_len(&text));
            prop_assert_eq!(decoded(&encoded), Ok(text));
        }

        #[test]
        fn each_decodable_string_has_one_encoding(input in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(text) = decoded(&input) {
                let mut encoded = Vec::new();
                encode(&text, &mut encoded);
                prop_assert_eq!(encoded, input);
            }
        }
    }

    #[test]
    fn codes_are_those_of_the_table() {
        // Some of RFC 7541, appendix B.
        for (symbol, code) in [
            (b'0', 0x0),
            (b'~', 0x1ffd),
            (0, 0x1ff8),
            (255, 0x3ff_ffee),
            (249, 0xfff_fffe),
            (22, 0x3fff_fffe),
        ] {
            assert_eq!(TABLES.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(TABLES.limits[LONGEST], 1 << LONGEST, "no code is left over");
    }

    #[test]
    fn padding_is_short_and_all_ones() {
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[0b0000_0110]), Err(HpackError));
        assert_eq!(decoded(&[0xff]), Err(HpackError), "eight bits of padding");
        assert_eq!(decoded(&[0xff; 4]), Err(HpackError), "the end of a string");
    }
}
