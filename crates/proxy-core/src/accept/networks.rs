//! Sets of addresses, as options and files list them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Most networks of a file.
const FILE_NETWORKS_MAX: usize = 1_000_000;

/// A set of addresses: networks that are sorted and do not overlap, so that looking an address up is a binary search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

/// The text is neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is neither an address nor a network; expected such as 10.0.0.0/8 or 2001:db8::1")]
pub struct ParseNetworksError {
    text: String,
}

/// The text is not a list of networks, one on each line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseNetworkListError {
    #[error("line {line}: {error}")]
    Line { line: usize, error: ParseNetworksError },
    #[error("it has more than {FILE_NETWORKS_MAX} networks")]
    TooMany,
}

impl Networks {
    /// True if no address is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of networks, after those that overlap or adjoin were merged.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `address` is in the set. An IPv4 address of a dual-stack socket counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let behind = self.0.partition_point(|network| network.network() <= address);
        self.0[..behind].last().is_some_and(|network| network.contains(&address))
    }

    /// Parses a list with a network or an address on each line; `#` begins a comment.
    pub(crate) fn parse_list(text: &str) -> Result<Self, ParseNetworkListError> {
        let mut networks = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if networks.len() == FILE_NETWORKS_MAX {
                return Err(ParseNetworkListError::TooMany);
            }
            networks.push(network(text).map_err(|error| ParseNetworkListError::Line { line, error })?);
        }
        Ok(Self(IpNet::aggregate(&networks)))
    }
}

fn network(text: &str) -> Result<IpNet, ParseNetworksError> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let network = parsed.map_err(|_| ParseNetworksError { text: text.to_owned() })?;
    // As the addresses that are looked for: IPv4 in IPv6 is IPv4.
    let mapped = |ip: IpAddr| IpNet::new(ip.to_canonical(), network.prefix_len().checked_sub(96)?).ok();
    let is_mapped = network.addr().is_ipv6() && network.addr().to_canonical().is_ipv4();
    Ok(is_mapped.then(|| mapped(network.addr())).flatten().unwrap_or(network))
}

impl FromStr for Networks {
    type Err = ParseNetworksError;

    /// Parses addresses and networks with commas between them.
    fn from_str(text: &str) -> Result<Self, ParseNetworksError> {
        let networks = text.split(',').map(str::trim).map(network).collect::<Result<_, _>>()?;
        Ok(Self(IpNet::aggregate(&networks)))
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, network) in self.0.iter().enumerate() {
            write!(f, "{}{network}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_in_one_of_its_networks() {
        let networks: Networks = "10.0.0.0/8, 192.0.2.7,2001:db8::/32".parse().unwrap();
        for (address, expected) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("9.255.255.255", false),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
            ("::1", false),
        ] {
            assert_eq!(networks.contains(address.parse().unwrap()), expected, "{address}");
        }
        assert_eq!(networks.to_string().parse::<Networks>().unwrap(), networks);
        assert!(!Networks::default().contains("10.0.0.1".parse().unwrap()));
        for text in ["", "10.0.0.0/33", "10.0.0.0/8,,", "localhost"] {
            text.parse::<Networks>().unwrap_err();
        }
    }

    #[test]
    fn a_list_has_comments_and_its_errors_name_the_line() {
        let list = "# offices\n10.0.0.0/8\n\n  2001:db8::1 # the printer\r\n192.0.2.1";
        assert_eq!(
            Networks::parse_list(list).unwrap().to_string(),
            "10.0.0.0/8,192.0.2.1/32,2001:db8::1/128"
        );
        assert_eq!(Networks::parse_list("# nobody\n"), Ok(Networks::default()));
        let error = Networks::parse_list("10.0.0.0/8\n10.0.0.0/8 x").unwrap_err().to_string();
        assert!(error.starts_with("line 2: \"10.0.0.0/8 x\" is neither"), "{error}");
        let many = "10.0.0.1\n".repeat(FILE_NETWORKS_MAX + 1);
        assert_eq!(Networks::parse_list(&many), Err(ParseNetworkListError::TooMany));
    }

    #[test]
    fn a_hundred_thousand_networks_are_searched() {
        let mut list = String::new();
        // Every other /24, so that none can be merged.
        (0..100_000_u32).for_each(|n| writeln!(list, "{}/24", Ipv4Addr::from_bits(n << 9)).unwrap());
        let networks = Networks::parse_list(&list).unwrap();
        assert_eq!(networks.0.len(), 100_000);
        for n in (0..100_000).step_by(7) {
            let inside = Ipv4Addr::from_bits((n << 9) + 255);
            let outside = Ipv4Addr::from_bits((n << 9) + 256);
            assert!(networks.contains(inside.into()) && !networks.contains(outside.into()), "{inside}");
        }
    }

    proptest! {
        #[test]
        fn a_search_finds_what_a_look_at_each_network_finds(
            networks in prop::collection::vec((any::<u8>(), 24..=32_u8), 0..20),
            last in any::<u8>(),
        ) {
            let networks = networks.into_iter().map(|(last, prefix)| {
                IpNet::new(Ipv4Addr::new(10, 0, 0, last).into(), prefix).unwrap()
            });
            let networks: Vec<_> = networks.collect();
            let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
            let set = Networks(IpNet::aggregate(&networks));
            prop_assert_eq!(set.contains(address), networks.iter().any(|one| one.contains(&address)));
        }
    }
}
