//! Descriptors are given back, and running out of them is survived. In a process of its own, since it counts and
//! takes all that the process has.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use records::metrics::ProxyCounter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

#[path = "../it/dice.rs"]
mod dice;
mod hellos;
#[path = "../it/pki.rs"]
#[expect(dead_code, reason = "the same")]
mod pki;
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "only a part of it is used here")]
mod support;

use dice::SeededRandom;
use pki::{P256, Pki};
use support::{
    TLS12, TLS13, TestProxy, TestUpstream, echo, end, eventually, read_all, serve_echo, tcp_to, tls_over,
};

/// Threads that connect at the same time, and how often each does in the three parts of the test, the last two of which warm
/// up before they are judged.
const THREADS: usize = 4;
const SHORT: usize = 400;
const SILENT: [usize; 2] = [1_000, 12_500];
const MUTATED: [usize; 2] = [500, 5_000];

/// What memory may grow by over many thousand connections.
const GROWTH_BYTES_MAX: u64 = 4 << 20;

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// CPU time of the process, which takes no descriptor to ask for.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn worker_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|name| ["proxy-0", "proxy-1"].contains(&name.trim())).count()
}

// One test, so that nothing else in the process opens or closes descriptors meanwhile.
#[test]
fn no_descriptor_leaks_and_exhaustion_is_survived() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("one", &P256, &["localhost"]);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.half_closed_timeout = Duration::from_secs(1);
        config.tls.certificates.push(pki.load("one"));
    });
    // A thread names itself, as the first thing it does. CPU time is accounted by these names.
    eventually("both workers are named", || worker_threads() == 2);
    let before = open_descriptors();
    many_short_connections(&mut proxy);
    eventually("all descriptors are back", || open_descriptors() == before);
    very_many_that_never_shake_hands(&mut proxy);
    eventually("all descriptors are back", || open_descriptors() == before);
    many_mutated_hellos(&mut proxy);
    eventually("all descriptors are back", || open_descriptors() == before);
    running_out(&mut proxy, &pki);
    let total = proxy.finish();
    assert!(total.counters[ProxyCounter::AcceptErrors] > 0);
}

fn many_short_connections(proxy: &mut TestProxy) {
    const CONNECTIONS: u64 = (THREADS * SHORT) as u64;
    let configs = [proxy.client(&TLS12), proxy.client(&TLS13)];
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (configs, addr) = (&configs, proxy.addr());
            scope.spawn(move || {
                for i in 0..SHORT {
                    let mut tls = tls_over(tcp_to(addr), &configs[(n + i) % 2]);
                    echo(&mut tls, b"hello");
                    // Half of them end well, the others just leave.
                    if i % 2 == 0 {
                        end(&mut tls);
                        read_all(&mut tls);
                    }
                }
            });
        }
    });
    proxy.expect(ProxyCounter::Closed, CONNECTIONS);
    assert_eq!(proxy.count(ProxyCounter::Accepted), CONNECTIONS);
    assert_eq!(proxy.count(ProxyCounter::BytesIn), 5 * CONNECTIONS);
    assert_eq!(proxy.count(ProxyCounter::BytesOut), 5 * CONNECTIONS);
    assert_eq!(proxy.count(ProxyCounter::HandshakesFailed), 0);
    assert_eq!(proxy.count(ProxyCounter::Failed), 0);
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

/// Waits until nobody is connected, and forgets what is recorded of those who were.
fn settle(proxy: &mut TestProxy) {
    eventually("all are closed", || {
        proxy.collect();
        proxy.total.connections.clear();
        proxy.total.counters[ProxyCounter::Closed] == proxy.total.counters[ProxyCounter::Accepted]
    });
}

/// Connections that end at once, by a reset so that they keep no port, with nothing said or with rubbish.
fn very_many_that_never_shake_hands(proxy: &mut TestProxy) {
    let addr = proxy.addr();
    let visit_all = |connections: usize| {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(move || {
                    for i in 0..connections {
                        let mut socket = tcp_to(addr);
                        if i % 2 == 0 {
                            let _ = socket.write_all(&[22, 3, 1, 2, 0, 1, 0, (i % 256) as u8]);
                        }
                        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
                    }
                });
            }
        });
    };
    visit_all(SILENT[0]);
    settle(proxy);
    let before = resident_bytes();
    visit_all(SILENT[1]);
    settle(proxy);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_BYTES_MAX, "{grown} bytes more after {} connections", THREADS * SILENT[1]);
}

/// Real clients' first messages with changes by chance, whole or in pieces, and then the end or a reset.
fn many_mutated_hellos(proxy: &mut TestProxy) {
    let recorded = hellos::recorded(&[proxy.client(&TLS12), proxy.client(&TLS13)]);
    let addr = proxy.addr();
    let visit_all = |connections: usize, seed: u64| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS as u64 {
                let mut dice = SeededRandom((seed + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let recorded = &recorded;
                scope.spawn(move || {
                    for _ in 0..connections {
                        let mut hello = recorded[dice.roll(recorded.len())].clone();
                        hellos::mutate(&mut hello, &mut dice);
                        visit(addr, &hello, &mut dice);
                    }
                });
            }
        });
    };
    visit_all(MUTATED[0], 1);
    settle(proxy);
    let (before, counted) = (resident_bytes(), proxy.total.counters);
    visit_all(MUTATED[1], 100);
    settle(proxy);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_BYTES_MAX, "{grown} bytes more after {} connections", THREADS * MUTATED[1]);
    let count = |counter| proxy.total.counters[counter] - counted[counter];
    // Where the queue of a listener is full, the kernel forgets those who leave before there is room again.
    let (all, come) = ((THREADS * MUTATED[1]) as u64, count(ProxyCounter::Accepted));
    assert!(come >= all * 9 / 10, "{come} of {all} were accepted");
    // One of those who came earlier may have waited there until now, so that what bounds the count are all there ever were.
    let made = THREADS * (SHORT + SILENT.into_iter().chain(MUTATED).sum::<usize>());
    let accepted = proxy.total.counters[ProxyCounter::Accepted];
    assert!(accepted <= made as u64, "{accepted} were accepted, and {made} have come");
    // Each of these shows that a part of the way was gone: some hellos are still good, some are none.
    for counter in [
        ProxyCounter::FailedEof,
        ProxyCounter::FailedNotTls,
        ProxyCounter::FailedIncompatible,
        ProxyCounter::FailedOther,
    ] {
        assert!(count(counter) > 100, "{counter:?}: {}", count(counter));
    }
    echo(&mut proxy.connect(&proxy.client(&TLS13)), b"it still serves");
    settle(proxy);
}

fn visit(addr: std::net::SocketAddr, hello: &[u8], dice: &mut SeededRandom) {
    let mut socket = tcp_to(addr);
    let pieces = hello.chunks(if dice.roll(4) == 0 { 1 + dice.roll(300) } else { hello.len() });
    for piece in pieces {
        // It may have been refused already.
        if socket.write_all(piece).is_err() {
            break;
        }
    }
    if dice.roll(4) > 0 {
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut socket, &mut std::io::sink());
    }
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
}

fn running_out(proxy: &mut TestProxy, pki: &Pki) {
    let config = proxy.client(&TLS13);
    let mut served = proxy.connect(&config);
    echo(&mut served, b"hello");
    let mut waiting = proxy.connect(&config);
    // A renewed certificate, which only needs to be renamed.
    pki.issue("next", &P256, &["localhost", "renewed"]);
    // The client's socket exists, and nothing is left for the proxy's end of it.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit { current: Some(open_descriptors() as u64 + 40), maximum: limit.maximum },
    )
    .unwrap();
    let mut ballast = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        ballast.push(file);
    }
    let mut more = None;
    if proxy.count(ProxyCounter::AcceptErrors) == 0 {
        // `waiting` was accepted before the descriptors ran out; another one comes too late.
        drop(ballast.pop());
        more = Some(proxy.connect(&config));
    }
    proxy.expect_at_least(ProxyCounter::AcceptErrors, 1);
    let (cpu, errors, began_at) = (cpu_time(), proxy.count(ProxyCounter::AcceptErrors), Instant::now());
    while began_at.elapsed() < Duration::from_millis(500) {
        echo(&mut served, b"still served");
        std::thread::sleep(Duration::from_millis(20));
    }
    let errors = proxy.count(ProxyCounter::AcceptErrors) - errors;
    assert!(errors <= 14, "{errors} attempts to accept in half a second");
    let spent = cpu_time().saturating_sub(cpu);
    assert!(spent < Duration::from_millis(250), "{spent:?} of CPU time in half a second");
    // Nobody asks for anything now, and what waits in the backlog goes on waiting.
    let cpu = cpu_time();
    std::thread::sleep(Duration::from_secs(1));
    let spent = cpu_time().saturating_sub(cpu);
    assert!(spent < Duration::from_millis(50), "{spent:?} of CPU time in a second of waiting");
    for end in ["pem", "key"] {
        std::fs::rename(pki.path(&format!("next.{end}")), pki.path(&format!("one.{end}"))).unwrap();
    }
    for _ in 0..4 {
        let refreshed = proxy.proxy.refresh();
        assert!(refreshed.changes.is_empty() && refreshed.refusals.is_empty(), "{refreshed:?}");
    }
    let first = said(proxy);
    assert!(first.len() == 1 && first[0].contains("cannot be accepted"), "once an episode: {first:?}");
    let asked = proxy.proxy.reload().refusals;
    assert!(asked.iter().any(|refusal| refusal.to_string().contains("one.pem")), "{asked:?}");

    ballast.clear();
    let relieved_at = Instant::now();
    echo(more.as_mut().unwrap_or(&mut waiting), b"hello");
    assert!(relieved_at.elapsed() < Duration::from_secs(1), "{:?}", relieved_at.elapsed());
    setrlimit(Resource::Nofile, limit).unwrap();
    end(&mut served);
    let changes = proxy.proxy.refresh().changes;
    assert!(changes.len() == 1 && changes[0].name == "proxy.certificate.2", "tried again: {changes:?}");
    let mut told = Vec::new();
    eventually("the end of the episode is told", || {
        told.extend(said(proxy));
        !told.is_empty()
    });
    assert!(told.len() == 1 && told[0].contains("suffice again"), "{told:?}");
}

fn said(proxy: &TestProxy) -> Vec<String> {
    proxy.proxy.take_notices().into_iter().map(|notice| notice.text).collect()
}
