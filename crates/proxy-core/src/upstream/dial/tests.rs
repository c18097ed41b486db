use super::*;
use crate::notices::NoticeLog;
use crate::upstream::names::resolver::Resolver;
use crate::upstream::target::Upstream;
use socket2::{Domain, SockAddr, Type};
use std::os::unix::net::UnixStream;

struct BusyUpstream {
    _dir: tempfile::TempDir,
    listener: socket2::Socket,
    dialer: UpstreamDialer,
    registry: Rc<Registry>,
}

impl BusyUpstream {
    /// A Unix socket with a backlog of one connection, which is taken.
    fn full() -> (Self, UnixStream) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let listener = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let filler = UnixStream::connect(&path).unwrap();
        let notices = Arc::new(NoticeLog::default());
        let upstreams = Upstreams::resolve(&[Upstream::unix(path)], &Resolver::default(), notices).unwrap();
        let dialer = UpstreamDialer::new(Arc::new(upstreams), 0);
        let poll = mio::Poll::new().unwrap();
        let registry = Rc::new(poll.registry().try_clone().unwrap());
        (Self { _dir: dir, listener, dialer, registry }, filler)
    }

    fn advance(
        &mut self,
        attempt: &mut ConnectAttempt,
        key: usize,
        now: Instant,
    ) -> io::Result<ConnectProgress> {
        let (registry, token, tls) = (&self.registry, Token(key), &Rc::default());
        let caller = DialContext { registry, key, token, now, tls };
        attempt.advance(&mut self.dialer, caller, &mut UpstreamDeltas::default())
    }
}

fn is_waiting(progress: &io::Result<ConnectProgress>) -> bool {
    matches!(progress, Ok(ConnectProgress::Wait(_)))
}

fn is_established(progress: &io::Result<ConnectProgress>) -> bool {
    matches!(progress, Ok(ConnectProgress::Established { .. }))
}

#[test]
fn only_the_first_waiter_retries_a_full_backlog_until_its_deadline() {
    let (mut stage, _filler) = BusyUpstream::full();
    let start = Instant::now();
    let [mut first, mut second] = [0; 2]
        .map(|_| ConnectAttempt::new(start, Duration::from_secs(1), Candidates::new(1, None), Vec::new()));
    let Ok(ConnectProgress::Wait(until)) = stage.advance(&mut first, 1, start) else { panic!("not waiting") };
    assert_eq!(until - start, RETRY_INTERVAL);
    let Ok(ConnectProgress::Wait(until)) = stage.advance(&mut second, 2, start) else {
        panic!("not waiting")
    };
    assert_eq!(until - start, Duration::from_secs(1), "it has nothing to ask for");
    assert!(is_waiting(&stage.advance(&mut first, 1, start + Duration::from_millis(999))));
    let error = stage.advance(&mut first, 1, start + Duration::from_secs(1)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(stage.dialer.take_woken(), [2]);
}

#[test]
fn waiting_connections_are_served_in_order() {
    let (mut stage, _filler) = BusyUpstream::full();
    let now = Instant::now();
    let mut attempts: Vec<_> = (0..4)
        .map(|_| ConnectAttempt::new(now, Duration::from_secs(1), Candidates::new(1, None), Vec::new()))
        .collect();
    for (key, attempt) in attempts.iter_mut().enumerate().take(3) {
        assert!(is_waiting(&stage.advance(attempt, key, now)));
    }
    let mut held = vec![stage.listener.accept().unwrap()];
    assert!(is_waiting(&stage.advance(&mut attempts[2], 2, now)), "there is room, but not for the third");
    assert!(is_waiting(&stage.advance(&mut attempts[3], 3, now)), "nor for one that has just come");
    // The second one's client leaves.
    attempts[1].abandon(&mut stage.dialer);
    for key in [0, 2, 3] {
        assert!(is_established(&stage.advance(&mut attempts[key], key, now)), "{key}");
        held.push(stage.listener.accept().unwrap());
        let next = if key == 0 { 2 } else { 3 };
        assert_eq!(stage.dialer.take_woken(), if key == 3 { vec![] } else { vec![next] });
    }
}
