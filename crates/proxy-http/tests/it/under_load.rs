//! Under load: a drain loses nothing, nor does an upstream that closes its connections.

use std::time::Duration;

use http::Method;
use records::metrics::HttpCounter;

use crate::http2_client::{connect, get, read, request, run};
use crate::support::TestHttpProxy;
use crate::upstream::{HELLO, ScriptedUpstream};

#[test]
fn no_request_under_load_is_lost_in_a_drain() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(3));
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = proxy.connect();
            std::thread::spawn(move || {
                for n in 1.. {
                    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                    let answer = client.answer();
                    assert_eq!(answer.text(), "hello");
                    if answer.field("connection").is_some() {
                        return n;
                    }
                }
                unreachable!("it says close at last")
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    proxy.proxy.drain();
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], answered);
    assert_eq!(http.counters[HttpCounter::Requests], answered);
}

#[test]
fn no_stream_under_load_is_lost_in_a_drain() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(3));
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let answered = run(async {
        let (client, driver) = connect(&proxy).await;
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let client = client.clone();
            all.spawn(async move {
                let mut answered = 0;
                // A client that has seen GOAWAY begins no further stream.
                while let Ok(mut client) = client.clone().ready().await {
                    let Ok((response, _)) = client.send_request(request(Method::GET, "/"), true) else {
                        break;
                    };
                    match response.await {
                        Ok(response) => {
                            assert_eq!(read(response.into_body()).await.unwrap().0, b"hello");
                            answered += 1;
                        }
                        Err(error) => assert!(error.is_go_away(), "{error}"),
                    }
                }
                answered
            });
        }
        drop(client);
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.proxy.drain();
        let answered: u64 = all.join_all().await.into_iter().sum();
        driver.await.unwrap().unwrap();
        answered
    });
    let http = proxy.finish().http.unwrap();
    assert!(answered > 0);
    assert_eq!(http.counters[HttpCounter::Status2xx], answered);
    assert_eq!(http.counters[HttpCounter::Requests], answered, "nothing was begun and given up");
}

#[test]
fn an_upstream_that_closes_now_and_then_fails_no_get() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        for _ in 0..10 {
            if peer.head().is_none() {
                return;
            }
            peer.send(HELLO);
        }
        // It closes without a word, as the next request may be on its way.
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let client = client.clone();
            all.spawn(async move {
                for _ in 0..50 {
                    assert_eq!(get(&client, "/").await.unwrap(), (200, b"hello".to_vec()));
                }
            });
        }
        all.join_all().await;
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 800);
}
