use super::*;
use std::io::Read;

#[test]
fn upstreams_read_back_as_they_were_written() {
    for text in [
        "unix:/run/app.sock",
        "localhost:8080",
        "127.0.0.1:80",
        "[::1]:8080",
        "tls://app.example.org:443",
        "tls://unix:/run/app.sock",
        "h2c://unix:/run/app.sock",
        "h2://[::1]:8443",
        "tls://app:443,weight=256",
        "unix:/run/a,weight=2",
        "unix:/run/a,b",
        "tls://10.0.0.1:443,name=api.internal",
        "h2://unix:/run/a,name=10.0.0.1,weight=3",
    ] {
        assert_eq!(text.parse::<Upstream>().unwrap().to_string(), text);
    }
}

#[test]
fn a_malformed_upstream_says_what_was_expected() {
    let long = format!("unix:/{}", "x".repeat(200));
    for text in
        ["", "unix:", "localhost", "localhost:", "localhost:0", "localhost:70000", ":80", "::1:80", "[x]:80"]
            .into_iter()
            .chain([
                long.as_str(),
                "http://localhost:80",
                "tls://localhost",
                "tls://",
                "tls:localhost:1",
                "localhost:1,weight=0",
                "localhost:1,weight=257",
                "localhost:1,weight=",
                "localhost:1,share=2",
            ])
    {
        let error = text.parse::<Upstream>().unwrap_err().to_string();
        assert!(error.contains("expected unix:/path or host:port"), "{error}");
    }
}

#[test]
fn the_words_of_an_upstream_have_any_order_and_its_name_is_that_of_tls() {
    let upstream: Upstream = "tls://10.0.0.1:443,weight=3,name=api.internal".parse().unwrap();
    assert_eq!(upstream.to_string(), "tls://10.0.0.1:443,name=api.internal,weight=3");
    assert_eq!(upstream.unweighted().to_string(), "tls://10.0.0.1:443,name=api.internal");
    assert_eq!(upstream.tls_peer().unwrap().name.to_string(), "api.internal");
    for (text, problem) in [
        ("10.0.0.1:80,name=api.internal", "a name goes with TLS"),
        ("h2c://10.0.0.1:80,name=api.internal", "a name goes with TLS"),
        ("unix:/a,name=api.internal", "a name goes with TLS"),
        ("tls://10.0.0.1:443,name=", "the name is none that a TLS server can have"),
        ("tls://10.0.0.1:443,name=a b", "the name is none that a TLS server can have"),
        ("tls://10.0.0.1:443,name=a,name=b", "the weight or the name is given twice"),
        ("tls://10.0.0.1:443,weight=1,name=b,weight=1", "the weight or the name is given twice"),
    ] {
        let error = text.parse::<Upstream>().unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains(",name=NAME"), "{error}");
    }
}

#[test]
fn a_probe_tells_whether_somebody_listens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let unix = Upstream::unix(&path);
    assert!(unix.probe(None, &UpstreamTls::default()).unwrap_err().to_string().contains("app.sock"));
    let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
    unix.probe(None, &UpstreamTls::default()).unwrap();

    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream: Upstream = tcp.local_addr().unwrap().to_string().parse().unwrap();
    upstream.probe(None, &UpstreamTls::default()).unwrap();
    drop(tcp);
    upstream.probe(None, &UpstreamTls::default()).unwrap_err();
}

#[test]
fn a_probe_sends_the_header_that_its_upstream_expects() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream: Upstream = tcp.local_addr().unwrap().to_string().parse().unwrap();
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".as_slice();
    for (header, expected) in [
        (None, [].as_slice()),
        (Some(ProxyProtocol::V1), b"PROXY UNKNOWN\r\n"),
        (Some(ProxyProtocol::V2), local),
    ] {
        upstream.probe(header, &UpstreamTls::default()).unwrap();
        let mut received = Vec::new();
        tcp.accept().unwrap().0.read_to_end(&mut received).unwrap();
        assert_eq!(received, expected, "{header:?}");
    }
}
