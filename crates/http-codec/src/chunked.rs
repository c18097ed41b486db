//! The chunked coding.

/// Longest sum of extensions and trailers.
const OVERHEAD_BYTES_MAX: usize = 64 << 10;

/// The bytes are not chunks, or their extensions and trailers are too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a chunk is malformed")]
pub struct MalformedChunk;

/// The chunked coding, taken off as it comes (RFC 9112, section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunked {
    step: ChunkStep,
    /// Bytes of extensions and trailers received, which are bounded.
    overhead: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkStep {
    /// In the digits of a size: the present value, and the number of digits.
    Size {
        size: u64,
        digits: u32,
    },
    /// In the rest of a line with this chunk's size.
    Extension {
        size: u64,
    },
    /// So many bytes of the chunk are left.
    Data(u64),
    /// At the line break after a chunk; a line feed alone will do.
    AfterData,
    /// Within the line break after a chunk.
    LineEnd,
    /// In a trailer line, of which this many bytes were read; an empty line ends the body.
    Trailer {
        len: u32,
    },
    Done,
}

impl Default for ChunkStep {
    fn default() -> Self {
        Self::Size { size: 0, digits: 0 }
    }
}

impl Chunked {
    /// True at the end of the body.
    pub fn is_done(&self) -> bool {
        self.step == ChunkStep::Done
    }

    /// Consumes bytes up to the end of the body, returns their number, and passes on the content without the framing.
    ///
    /// # Errors
    /// If they are malformed.
    pub fn feed(&mut self, input: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, MalformedChunk> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            if let ChunkStep::Data(left) = self.step {
                let taken = (input.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                data(&input[at..at + taken]);
                at += taken;
                let left = left - taken as u64;
                self.step = if left == 0 { ChunkStep::AfterData } else { ChunkStep::Data(left) };
            } else {
                self.step = self.next(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn next(&mut self, byte: u8) -> Result<ChunkStep, MalformedChunk> {
        Ok(match (self.step, byte) {
            (ChunkStep::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                let digit = char::from(byte).to_digit(16).ok_or(MalformedChunk)?;
                ChunkStep::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (ChunkStep::Size { digits: 0, .. }, _) => return Err(MalformedChunk),
            (ChunkStep::Size { size, .. } | ChunkStep::Extension { size }, b'\n') => match size {
                0 => ChunkStep::Trailer { len: 0 },
                size => ChunkStep::Data(size),
            },
            (ChunkStep::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => ChunkStep::Extension { size },
            (ChunkStep::Extension { size }, _) => {
                self.spend()?;
                ChunkStep::Extension { size }
            }
            (ChunkStep::AfterData, b'\r') => ChunkStep::LineEnd,
            (ChunkStep::AfterData | ChunkStep::LineEnd, b'\n') => ChunkStep::default(),
            (ChunkStep::Trailer { len: 0 }, b'\n') => ChunkStep::Done,
            (ChunkStep::Trailer { .. }, b'\n') => ChunkStep::Trailer { len: 0 },
            (ChunkStep::Trailer { len }, byte) => {
                self.spend()?;
                ChunkStep::Trailer { len: len + u32::from(byte != b'\r') }
            }
            _ => return Err(MalformedChunk),
        })
    }

    fn spend(&mut self) -> Result<(), MalformedChunk> {
        self.overhead += 1;
        if self.overhead > OVERHEAD_BYTES_MAX { Err(MalformedChunk) } else { Ok(()) }
    }
}
