//! Requests, written out once before the load starts.

use crate::config::{StartError, Template};
use crate::target::Target;

/// Largest body of a request, which is kept in memory.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request as it goes over a connection.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The bytes for a connection that carries more requests after this one.
    keep: Box<[u8]>,
    /// The bytes that also ask the server to close.
    close: Box<[u8]>,
    /// The method is `HEAD`: the answer will have no body.
    pub(crate) head_only: bool,
}

impl Prepared {
    /// Writes a template out for a target.
    pub(crate) fn new(template: &Template, target: &Target) -> Result<Self, StartError> {
        if let Some(reason) = flaw(template) {
            let clean = telemetry::clean::text;
            let (method, path) = (clean(&template.method), clean(&template.path));
            return Err(StartError::Template { method, path, reason });
        }
        Ok(Self {
            keep: write(template, target, ""),
            close: write(template, target, "Connection: close\r\n"),
            head_only: template.method == "HEAD",
        })
    }

    /// All bytes of the request.
    pub(crate) fn bytes(&self, close: bool) -> &[u8] {
        if close { &self.close } else { &self.keep }
    }
}

fn write(template: &Template, target: &Target, connection: &str) -> Box<[u8]> {
    let Template { method, path, body_bytes } = template;
    let host = target.authority();
    let version = env!("CARGO_PKG_VERSION");
    // A method that usually carries a body says so when it carries none (RFC 9110, section 8.6).
    let length = if *body_bytes > 0 || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        format!("Content-Length: {body_bytes}\r\n")
    } else {
        String::new()
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tlsdash/{version}\r\n{length}{connection}\r\n"
    );
    let mut bytes = head.into_bytes();
    // Letters in turn, so that a body that is cut or shifted does not look right.
    bytes.extend((b'a'..=b'z').cycle().take(*body_bytes));
    bytes.into_boxed_slice()
}

/// What makes a template impossible to send.
fn flaw(template: &Template) -> Option<&'static str> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if template.method.is_empty() || !template.method.bytes().all(is_token) {
        return Some("the method must be a word such as GET");
    }
    if template.method == "CONNECT" {
        return Some("CONNECT makes a tunnel and has no answer to wait for");
    }
    if !template.path.starts_with('/') || !template.path.bytes().all(|b| b.is_ascii_graphic()) {
        return Some("the path must begin with / and hold neither spaces nor control characters");
    }
    (template.body_bytes > BODY_BYTES_MAX).then_some("the body must not be larger than 64 MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(template: &Template) -> Result<Prepared, StartError> {
        Prepared::new(template, &"https://example.org:8443/".parse().unwrap())
    }

    #[test]
    fn a_request_is_written_as_http_1_1() {
        let get = prepared(&Template::get("/a?b")).unwrap();
        let agent = concat!("User-Agent: tlsdash/", env!("CARGO_PKG_VERSION"));
        let head = format!("GET /a?b HTTP/1.1\r\nHost: example.org:8443\r\n{agent}\r\n");
        assert_eq!(get.bytes(false), format!("{head}\r\n").as_bytes());
        assert_eq!(get.bytes(true), format!("{head}Connection: close\r\n\r\n").as_bytes());
    }

    #[test]
    fn a_body_follows_its_length() {
        let post = prepared(&Template::post("/echo", 30)).unwrap();
        let text = std::str::from_utf8(post.bytes(false)).unwrap();
        assert!(text.contains("\r\nContent-Length: 30\r\n"));
        assert!(text.ends_with("\r\n\r\nabcdefghijklmnopqrstuvwxyzabcd"));
    }

    #[test]
    fn templates_that_would_break_the_protocol_are_refused() {
        let with = |method: &str, path: &str| {
            prepared(&Template { method: method.into(), path: path.into(), body_bytes: 0 })
        };
        for (method, path) in
            [("", "/"), ("GE T", "/"), ("CONNECT", "/"), ("GET", ""), ("GET", "x"), ("GET", "/\r\nX: y")]
        {
            assert!(matches!(with(method, path), Err(StartError::Template { .. })), "{method} {path}");
        }
        assert!(with("OPTIONS", "/*").is_ok());
    }
}
