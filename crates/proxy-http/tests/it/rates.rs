//! The rate of a client's requests.

use std::net::IpAddr;

use records::ids::ClientId;
use records::metrics::HttpCounter;
use records::setting::Value;

use crate::support::{TestHttpProxy, client_errors};
use crate::upstream::{HELLO, ScriptedUpstream};

#[test]
fn requests_beyond_the_rate_get_429_and_the_connection_stays() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.request_rate = Some("1/m,burst=2".parse().unwrap());
    });
    let mut client = proxy.connect();
    let mut ask = |request: &str| {
        client.send(request);
        client.answer()
    };
    let get = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!([ask(get).status, ask(get).status], [200; 2]);
    let refused = ask(get);
    assert_eq!((refused.status, refused.text()), (429, "too many requests\n"));
    let seconds: u64 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((30..=60).contains(&seconds), "{seconds}");
    let with_content = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nhello";
    assert_eq!(ask(with_content).status, 429);
    proxy.expect(HttpCounter::FailedRequestRate, 2);
    proxy.proxy.set("proxy.request-rate", &Value::Text("off".to_owned())).unwrap();
    assert_eq!(ask(get).status, 200);
    drop(client);
    let total = proxy.finish();
    assert_eq!(client_errors(&total), 2);
    assert_eq!(upstream.heads().len(), 3);
}

#[test]
fn every_connection_of_a_client_takes_from_the_same_rate() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |config, http| {
        config.workers = 2.try_into().unwrap();
        http.limits.request_rate = Some("1/m,burst=5".parse().unwrap());
    });
    let served = (0..20).filter(|_| proxy.get("/").status == 200).count();
    assert_eq!(served, 5);
    proxy.expect(HttpCounter::FailedRequestRate, 15);
    proxy.finish();
}

#[test]
fn the_client_that_a_trusted_peer_names_is_limited() {
    let ask = |proxy: &TestHttpProxy, client: &str| {
        let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {client}\r\n\r\n");
        proxy.ask(&request).status
    };
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.request_rate = Some("1/m".parse().unwrap());
        http.trusted_forwarders = "127.0.0.0/8".parse().unwrap();
    });
    assert_eq!(ask(&proxy, "192.0.2.1"), 200);
    // What stands before the last address is the client's own word.
    assert_eq!(["192.0.2.1", "192.0.2.9, 192.0.2.1"].map(|client| ask(&proxy, client)), [429; 2]);
    assert_eq!(ask(&proxy, "192.0.2.2"), 200);
    proxy.expect(HttpCounter::FailedRequestRate, 2);
    let total = proxy.finish();
    let limited = ClientId::from("192.0.2.1".parse::<IpAddr>().unwrap());
    let errors = &total.http.unwrap().requests.errors;
    assert!(errors.iter().all(|request| request.record.client == limited), "{errors:?}");

    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.request_rate = Some("1/m".parse().unwrap());
    });
    let statuses = ["192.0.2.1", "192.0.2.2"].map(|client| ask(&proxy, client));
    assert_eq!(statuses, [200, 429], "nobody gets a rate by claiming to be another");
}
