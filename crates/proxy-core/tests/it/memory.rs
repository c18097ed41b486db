//! The guard of the process's memory. `proxy-http/tests/attacks/memory.rs` has the clients that attack it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proxy_core::{MemoryGauge, MemoryUsage, ProxyConfig};
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;

use crate::rates::is_refused;
use crate::support::{TLS13, TestProxy, TestUpstream, echo, eventually, pattern, read_all, serve_echo};

/// Memory of the process, in percent of its bound, as a test sets it.
#[derive(Clone, Default)]
struct TestMemory(Arc<AtomicU64>);

impl TestMemory {
    fn measured_by(&self, config: &mut ProxyConfig) {
        let memory = self.clone();
        config.memory = MemoryGauge::new(move |_| {
            let used_bytes = memory.0.load(Ordering::Relaxed) << 30;
            Some(MemoryUsage { used_bytes, max_bytes: 100 << 30, bound: "the test" })
        });
    }

    /// Sets it, and waits until the proxy has said so and its workers know.
    fn set(&self, percent: u64, proxy: &mut TestProxy, notice: &str) {
        self.0.store(percent, Ordering::Relaxed);
        let mut said = Vec::new();
        eventually(notice, || {
            said.extend(proxy.proxy.take_notices());
            said.iter().any(|said| said.text.contains(notice))
        });
        proxy.collect();
    }
}

#[test]
fn new_connections_are_refused_from_95_percent_until_below_90() {
    let (served, memory) = (TestUpstream::unix(serve_echo), TestMemory::default());
    let mut proxy = TestProxy::start_with(&served.upstream, |config| memory.measured_by(config));
    let config = proxy.client(&TLS13);
    let mut open = proxy.connect(&config);
    echo(&mut open, b"hello");
    let notice = "97280 of 102400 MiB are in use (the test): new connections are refused, and idle ones \
                  closed; 1 connection open, which hold 0 MiB for peers that do not read";
    memory.set(95, &mut proxy, notice);
    assert!(is_refused("127.0.0.1", proxy.addr()), "before TLS");
    echo(&mut open, b"still served");
    memory.0.store(90, Ordering::Relaxed);
    assert!(is_refused("127.0.0.1", proxy.addr()));
    memory.set(89, &mut proxy, "new connections are accepted again");
    echo(&mut proxy.connect(&config), b"hello");
    memory.set(84, &mut proxy, "idle connections stay open again");
    proxy.expect(ProxyCounter::RefusedMemory, 2);
    drop(open);
    let total = proxy.finish();
    let refused = total.connections.iter().find(|one| one.outcome == ConnectionOutcome::MemoryMax).unwrap();
    assert_eq!(refused.detail, "hardly any memory is left");
}

#[test]
fn idle_connections_are_closed_from_90_percent_and_those_in_use_stay() {
    let (served, memory) = (TestUpstream::unix(serve_echo), TestMemory::default());
    let mut proxy = TestProxy::start_with(&served.upstream, |config| memory.measured_by(config));
    let config = proxy.client(&TLS13);
    let [mut idle, mut in_use] = [(); 2].map(|()| proxy.connect(&config));
    echo(&mut idle, b"hello");
    memory.set(90, &mut proxy, "92160 of 102400 MiB are in use (the test): idle connections are closed");
    eventually("the idle one is closed", || {
        echo(&mut in_use, &pattern(100_000));
        thread::sleep(Duration::from_millis(50));
        proxy.count(ProxyCounter::IdleClosed) == 1
    });
    assert_eq!(read_all(&mut idle), (Vec::new(), true), "by close_notify");
    echo(&mut proxy.connect(&config), b"new ones are accepted");
    echo(&mut in_use, b"still in use");
    drop((idle, in_use));
    assert_eq!(proxy.finish().counters[ProxyCounter::IdleClosed], 1);
}
