//! Rates of clients, over all workers.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use records::ids::ClientId;

use crate::config::rate::Rate;

/// Buckets that share a lock, and that a client of any of them may take over.
const WAYS: usize = 8;
/// Groups of so many buckets: 131,072 buckets in all, in 2 MiB.
const GROUPS: usize = 16 << 10;

/// Token buckets of clients, in memory of a fixed size, which is allocated with the first rate.
///
/// A bucket is stored as the time at which it is full again (the generic cell rate algorithm). A bucket that is full
/// need not be stored. A client without a bucket takes over the one of its group that is full soonest, with what is missing
/// in it, and only if it gets a token. So the times of a group never go back, and a client that has lost its bucket finds
/// none later that is fuller: no flood of addresses gives anybody a token. While more clients than buckets are active,
/// clients share buckets, and get fewer tokens rather than more.
#[derive(Debug)]
pub struct ClientRates {
    epoch: Instant,
    /// The latest time that any worker has given, in nanoseconds since the epoch. Workers read the clock at different
    /// moments, and to a worker that is behind a bucket would look emptier than it is.
    latest_ns: AtomicU64,
    /// Keyed at random in each process, so no client can choose addresses that share a group.
    hasher: RandomState,
    groups: OnceLock<Box<[Group]>>,
}

type Group = Mutex<[Bucket; WAYS]>;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// The hash of its client's address.
    client: u64,
    /// When it is full again, in nanoseconds since the epoch.
    full_at_ns: u64,
}

impl Default for ClientRates {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            latest_ns: AtomicU64::new(0),
            hasher: RandomState::new(),
            groups: OnceLock::new(),
        }
    }
}

impl ClientRates {
    /// Takes a token of `client`, whose bucket fills at `rate`. IPv6 counts by /64, the range of one subscriber.
    ///
    /// # Errors
    /// Without a token: the time until there is one.
    pub fn take(&self, client: ClientId, rate: Rate, now: Instant) -> Result<(), Duration> {
        let now_ns = u64::try_from(now.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX);
        let now_ns = self.latest_ns.fetch_max(now_ns, Ordering::Relaxed).max(now_ns);
        let client = self.hasher.hash_one(client.by_prefix_64());
        let groups = self.groups.get_or_init(|| (0..GROUPS).map(|_| Mutex::default()).collect());
        let mut group = groups[client as usize % GROUPS].lock().unwrap_or_else(PoisonError::into_inner);
        let [first, others @ ..] = &mut *group;
        let rank = |bucket: &Bucket| (bucket.client != client, bucket.full_at_ns);
        let bucket =
            others.iter_mut().fold(first, |best, other| if rank(other) < rank(best) { other } else { best });
        let empty_ns = now_ns.saturating_add(rate.burst_ns());
        // A rate that was lower before may have left more to fill than the bucket holds now.
        let full_at_ns = bucket.full_at_ns.clamp(now_ns, empty_ns).saturating_add(rate.interval_ns());
        if full_at_ns > empty_ns {
            return Err(Duration::from_nanos(full_at_ns - empty_ns));
        }
        *bucket = Bucket { client, full_at_ns };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::thread;

    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn client(n: u32) -> ClientId {
        IpAddr::from(Ipv4Addr::from_bits(n)).into()
    }

    #[test]
    fn a_client_gets_a_burst_and_then_its_rate() {
        let (rates, rate) = (ClientRates::default(), rate("10/s,burst=3"));
        let mut now = rates.epoch;
        let taken = |now| (0..10).filter(|_| rates.take(client(1), rate, now).is_ok()).count();
        assert_eq!(taken(now), 3);
        assert_eq!(rates.take(client(1), rate, now), Err(Duration::from_millis(100)));
        assert_eq!(rates.take(client(2), rate, now), Ok(()), "others have their own");
        now += Duration::from_millis(100);
        assert_eq!(taken(now), 1);
        assert_eq!(taken(now + Duration::from_millis(99)), 0);
        assert_eq!(taken(now + Duration::from_secs(3600)), 3, "a pause saves no more than a burst");
    }

    #[test]
    fn a_worker_whose_clock_is_behind_grants_the_whole_burst() {
        let (rates, rate) = (ClientRates::default(), rate("1/m,burst=2"));
        let behind = rates.epoch + Duration::from_secs(1);
        assert_eq!(rates.take(client(1), rate, behind + Duration::from_millis(1)), Ok(()));
        assert_eq!(rates.take(client(1), rate, behind), Ok(()));
        assert!(rates.take(client(1), rate, behind).is_err());
    }

    #[test]
    fn ipv6_counts_by_64() {
        let (rates, rate) = (ClientRates::default(), rate("1/m"));
        let take = |text: &str| {
            let ip = IpAddr::from(text.parse::<Ipv6Addr>().unwrap());
            rates.take(ip.into(), rate, rates.epoch).is_ok()
        };
        assert!(take("2001:db8::1") && !take("2001:db8::2") && take("2001:db8:0:1::1"));
    }

    #[test]
    fn a_changed_rate_acts_at_once() {
        let rates = ClientRates::default();
        let take = |text| rates.take(client(1), rate(text), rates.epoch);
        assert_eq!(take("1/m"), Ok(()));
        assert_eq!(take("1/m"), Err(Duration::from_secs(60)));
        assert_eq!(
            take("10/s,burst=1"),
            Err(Duration::from_millis(100)),
            "not the minute of the former rate"
        );
        assert_eq!(take("1/m,burst=3"), Ok(()));
    }

    #[test]
    fn a_million_addresses_give_a_limited_client_no_token() {
        let (rates, rate) = (ClientRates::default(), rate("1/s,burst=4"));
        let now = rates.epoch + Duration::from_secs(1);
        let limited: Vec<_> = (0..1_000).map(client).collect();
        for &client in &limited {
            assert_eq!((0..9).filter(|_| rates.take(client, rate, now).is_ok()).count(), 4);
        }
        let flood = |now| (1_000..1_001_000).filter(|&n| rates.take(client(n), rate, now).is_ok()).count();
        // Each bucket gives what it holds, however many clients share it.
        let buckets = GROUPS * WAYS;
        let admitted = flood(now);
        assert!(admitted > 3 * buckets && admitted <= 4 * buckets, "{admitted}");
        assert_eq!(limited.iter().filter(|&&client| rates.take(client, rate, now).is_ok()).count(), 0);
        assert!(admitted + flood(now + Duration::from_secs(1)) <= 5 * buckets);
        let later = now + Duration::from_secs(60);
        let served = limited.iter().filter(|&&client| rates.take(client, rate, later).is_ok()).count();
        assert_eq!(served, 1_000, "once the flood is over");
        let groups = rates.groups.get().unwrap();
        assert_eq!(size_of_val(&**groups), GROUPS * size_of::<Group>());
        assert!(size_of_val(&**groups) < 3 << 20);
    }

    #[test]
    fn a_client_that_lost_its_bucket_gets_no_token_back() {
        let (rates, rate) = (ClientRates::default(), rate("1/m"));
        let now = rates.epoch;
        assert_eq!(rates.take(client(0), rate, now), Ok(()));
        // Each token of the flood is taken later than the client's, so that its bucket is full soonest.
        let flood = now + Duration::from_secs(30);
        (1..1_000_000).for_each(|n| _ = rates.take(client(n), rate, flood));
        assert!(rates.take(client(0), rate, flood).is_err());
        assert!(rates.take(client(0), rate, now + Duration::from_secs(59)).is_err());
    }

    #[test]
    fn workers_share_the_tokens() {
        let (rates, rate) = (ClientRates::default(), rate("1/m,burst=1000"));
        let take = || (0..1_000).filter(|_| rates.take(client(1), rate, rates.epoch).is_ok()).count();
        let taken = thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(take));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(taken.iter().sum::<usize>(), 1_000);
    }
}
