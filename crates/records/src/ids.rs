//! Ids of runs, connections and clients.

use crate::text::ParseIdError;
use crate::text::keywords::Keyword;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The most parts that a run has: with the whole run, as many as a dashboard keeps in full.
pub const RUN_PARTS_MAX: u8 = 15;

/// The digits of an id without the number of the part.
pub const FAMILY_DIGITS: usize = 30;

/// Names one run of tlsdash: 120 random bits and the number of its part, written as 32 lower-case hexadecimal digits. The
/// whole run is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

impl RunId {
    /// Draws a new id from the kernel's random numbers.
    ///
    /// # Errors
    /// If the kernel has no random numbers.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Self(u128::from_be_bytes(bytes)).whole())
    }

    /// The run that this one is a part of, or itself.
    #[must_use]
    pub const fn whole(self) -> Self {
        Self(self.0 & !0xff)
    }

    /// A part of this run, such as one service of those that packets show.
    #[must_use]
    pub const fn part(self, number: u8) -> Self {
        Self(self.whole().0 | number as u128)
    }

    /// The [`FAMILY_DIGITS`] that the whole run and its parts have in common: their ids begin so.
    pub fn family(self) -> String {
        self.to_string()[..FAMILY_DIGITS].to_owned()
    }

    /// Makes the id with these bits, for tests and fixed examples.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The id of two runs taken together, in whichever order.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// The first eight digits, enough to distinguish runs on a screen.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 >> 96)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        bits(text).map(Self).ok_or(ParseIdError)
    }
}

/// The 128 bits of an id that is written as 32 hexadecimal digits, without a sign.
pub(crate) fn bits(text: &str) -> Option<u128> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(u128::from_be_bytes(bytes))
}

/// Numbers a connection within its run, from 1, in order of acceptance on its worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The client that traffic counts for: a source address, or `other` once the bounded table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientId {
    /// One source address; IPv4 clients of a dual-stack listener are IPv4 here.
    Addr(IpAddr),
    /// All clients for which the table had no room.
    Other,
}

impl From<IpAddr> for ClientId {
    fn from(addr: IpAddr) -> Self {
        Self::Addr(addr.to_canonical())
    }
}

impl ClientId {
    /// The same client with an IPv6 address cut to its /64, the unit that one subscriber usually holds.
    pub fn by_prefix_64(self) -> Self {
        match self {
            Self::Addr(IpAddr::V6(v6)) => {
                Self::Addr(IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))))
            }
            other => other,
        }
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => addr.fmt(f),
            Self::Other => f.pad("other"),
        }
    }
}

impl FromStr for ClientId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text == "other" {
            return Ok(Self::Other);
        }
        text.parse::<IpAddr>().map(Self::from).map_err(|_| ParseIdError)
    }
}

impl Keyword for ClientId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_they_were_written() {
        let run = RunId::random().unwrap();
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_ne!(run, RunId::random().unwrap());
        for text in ["127.0.0.2", "2001:db8::1", "other"] {
            assert_eq!(text.parse::<ClientId>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_client_it_stands_for() {
        assert_eq!("::ffff:10.0.0.1".parse(), "10.0.0.1".parse::<ClientId>());
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in ["", "+123456789012345678901234567890a", "abc", "0123456789abcdef0123456789abcdef0"] {
            assert_eq!(text.parse::<RunId>(), Err(ParseIdError), "{text:?}");
        }
        assert_eq!("10.0.0".parse::<ClientId>(), Err(ParseIdError));
    }

    #[test]
    fn one_subscribers_ipv6_addresses_are_one_client_by_prefix() {
        let a = ClientId::from("2001:db8:1:2:3::4".parse::<IpAddr>().unwrap());
        let b = ClientId::from("2001:db8:1:2:ffff::9".parse::<IpAddr>().unwrap());
        assert_eq!(a.by_prefix_64(), b.by_prefix_64());
        assert_ne!(a, b);
    }
}
