//! An authority that answers every request with the same refusal, which Pebble does not.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The answer to each order.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    status: &'static str,
    fields: &'static str,
    body: &'static str,
    refuses_all: bool,
}

impl Refusal {
    pub(crate) const RATE_LIMIT: Self = Self {
        status: "429 Too Many Requests",
        fields: "Retry-After: 3600\r\nContent-Type: application/problem+json\r\n",
        body: r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many certificates"}"#,
        refuses_all: false,
    };
    pub(crate) const MAD_RATE_LIMIT: Self = Self {
        fields: "Retry-After: 18446744073709551615\r\nContent-Type: application/problem+json\r\n",
        ..Self::RATE_LIMIT
    };
    pub(crate) const DEACTIVATED: Self = Self {
        status: "401 Unauthorized",
        fields: "Content-Type: application/problem+json\r\n",
        body: r#"{"type": "urn:ietf:params:acme:error:unauthorized", "detail": "the account is deactivated"}"#,
        refuses_all: false,
    };
    /// Not only to orders.
    pub(crate) const DOWN: Self = Self { refuses_all: true, ..Self::AWAY };
    /// Of a load balancer in front of an authority that is away.
    pub(crate) const AWAY: Self = Self {
        status: "503 Service Unavailable",
        fields: "Content-Type: text/html\r\n",
        body: "<html>",
        refuses_all: false,
    };
}

/// Serves a directory until the process ends, and answers each order with a refusal. Returns the directory's URL and the file
/// of its certificate.
pub(crate) fn serve_refusals(folder: &Path, refusal: Refusal) -> (String, PathBuf) {
    let made = generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = folder.join("authority.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let directory = format!("{root}/dir");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut line = String::new();
            if BufReader::new(&mut stream).read_line(&mut line).is_err() {
                continue;
            }
            let _ = stream.write_all(response(&line, &root, refusal).as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (directory, file)
}

fn response(request: &str, root: &str, refusal: Refusal) -> String {
    let (status, fields, body) = match request.split(' ').nth(1).unwrap_or_default() {
        "/dir" if !refusal.refuses_all => {
            let urls = ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange"];
            let urls: Vec<String> =
                urls.iter().map(|name| format!("\"{name}\": \"{root}/{name}\"")).collect();
            ("200 OK", String::new(), format!("{{{}}}", urls.join(", ")))
        }
        "/newNonce" => ("200 OK", String::new(), String::new()),
        "/newAccount" => ("201 Created", format!("Location: {root}/account/1\r\n"), "{}".to_owned()),
        _ => (refusal.status, refusal.fields.to_owned(), refusal.body.to_owned()),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nReplay-Nonce: bm9uY2U\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
