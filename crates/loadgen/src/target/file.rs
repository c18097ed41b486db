//! A file of requests, similar to vegeta's targets.
//!
//! ```text
//! # A method in capitals, or any line behind a blank one, begins a request; lines with # are comments.
//! 3 GET /bytes/100                 a weight before the method; 1 without
//! Accept: text/html
//!
//! POST https://localhost:8443/api  a URL must be of the server that is loaded
//! @body.bin                        the body from a file, beside this one unless the path is absolute
//! = echo                           the answer's body must be the request's, byte for byte
//!
//! PUT /upload
//! @10000                           a body of this many bytes
//! = 2                              the answer's body must have this many bytes
//! ```
//!
//! What follows two blanks after a path, a body or an expectation is a comment too.

use records::text::clean;
use std::path::{Path, PathBuf};

use super::{Expect, RequestBody, Target, TargetError, Template};
use crate::protocol::{RequestError, check_template};

/// Most requests of a file.
const TEMPLATES_MAX: usize = 10_000;

/// An error in a file of requests, with its line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TargetsError {
    /// The line, from 1.
    pub line: usize,
    pub reason: LineError,
}

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("expected [WEIGHT] METHOD PATH, not {0:?}")]
    NotARequest(String),
    /// Something follows its path.
    #[error("write a blank in a path as %20, and a comment behind two blanks, not {0:?}")]
    Blank(String),
    #[error("a weight is a number from 1, not {0}")]
    Weight(String),
    #[error(transparent)]
    Url(#[from] TargetError),
    #[error(
        "{url} is not on the server that is loaded, {target}; for another name of it, give the path alone and a field Host: NAME"
    )]
    OtherServer { url: Target, target: Target },
    /// The line is not part of a request.
    #[error("expected a header field, @BODY or = EXPECTED, not {0:?}")]
    NotADetail(String),
    /// The line does not describe an expected answer.
    #[error("expected = echo or = BYTES, not = {0:?}")]
    Expectation(String),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Body(#[from] ReadBodyError),
    /// The file has more requests than are taken.
    #[error("more than {TEMPLATES_MAX} requests")]
    TooMany,
    #[error("there is no request in it")]
    NoRequest,
}

/// The file of a body cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}", .path.display())]
pub struct ReadBodyError {
    pub path: PathBuf,
    pub error: std::io::Error,
}

/// Parses requests for `target` from the text of a file in `folder`.
///
/// # Errors
/// At the first line that is invalid or whose body cannot be read, and if there is no request.
pub fn parse_targets(text: &str, target: &Target, folder: &Path) -> Result<Vec<Template>, TargetsError> {
    let mut templates: Vec<Template> = Vec::new();
    let mut within = false;
    for (number, line) in text.lines().enumerate() {
        let fail = |reason: LineError| TargetsError { line: number + 1, reason };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            within &= !line.is_empty();
            continue;
        }
        if let (true, Some(template)) = (within && !begins_request(line), templates.last_mut()) {
            detail(template, line, folder).map_err(fail)?;
        } else if templates.len() < TEMPLATES_MAX {
            templates.push(request(line, target).map_err(fail)?);
            within = true;
        } else {
            return Err(fail(LineError::TooMany));
        }
        // An echo may still lack its body.
        if let (false, Some(template)) = (target.scheme().is_raw(), templates.last()) {
            check_template(template, target.scheme()).map_err(|error| fail(error.into()))?;
        }
    }
    if templates.is_empty() {
        return Err(TargetsError { line: 1, reason: LineError::NoRequest });
    }
    Ok(templates)
}

/// Whether a line begins a request also without a blank line before it, as in vegeta.
fn begins_request(line: &str) -> bool {
    let (mut word, mut rest) = first_word(line);
    if word.bytes().all(|b| b.is_ascii_digit()) {
        (word, rest) = first_word(rest.trim_start());
    }
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase()) && !rest.is_empty()
}

/// The first word, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// A line that begins a request: `[WEIGHT] METHOD PATH`.
fn request(line: &str, target: &Target) -> Result<Template, LineError> {
    let (mut word, mut rest) = first_word(line);
    let mut weight = 1;
    if word.bytes().all(|b| b.is_ascii_digit()) {
        let number = word.parse().ok().filter(|n| *n > 0);
        weight = number.ok_or_else(|| LineError::Weight(word.to_owned()))?;
        (word, rest) = first_word(rest.trim_start());
    }
    let expected = || LineError::NotARequest(clean::text(line));
    let (place, rest) = first_word(rest.trim_start());
    if !rest.is_empty() && !rest.starts_with("  ") && !rest.starts_with('\t') {
        return Err(LineError::Blank(clean::text(line)));
    }
    let path = if place.contains("://") {
        let url: Target = place.parse()?;
        let is_same = |get: fn(&Target) -> String| get(&url) == get(target);
        if url.scheme() != target.scheme() || !is_same(Target::authority) {
            return Err(LineError::OtherServer { url, target: target.clone() });
        }
        url.path().to_owned()
    } else if place.starts_with('/') {
        place.to_owned()
    } else {
        return Err(expected());
    };
    Ok(Template { method: word.to_owned(), weight, ..Template::get(path) })
}

/// A line within a request: a body, an expectation, or a header field.
fn detail(template: &mut Template, line: &str, folder: &Path) -> Result<(), LineError> {
    if let Some(body) = line.strip_prefix('@') {
        let body = without_comment(body);
        template.body = match body.parse::<usize>() {
            Ok(bytes) => RequestBody::Bytes(bytes),
            Err(_) => read_body(&folder.join(PathBuf::from(body)))?,
        };
    } else if let Some(expected) = line.strip_prefix('=') {
        template.expect = match without_comment(expected.trim()) {
            "echo" => Expect::Echo,
            bytes => {
                let expected = |_| LineError::Expectation(clean::text(bytes));
                Expect::Bytes(bytes.parse().map_err(expected)?)
            }
        };
    } else {
        let expected = || LineError::NotADetail(clean::text(line));
        let (name, value) = line.split_once(':').ok_or_else(expected)?;
        template.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(())
}

fn without_comment(text: &str) -> &str {
    text.split("  ").next().unwrap_or(text).trim()
}

/// A body from a file.
///
/// # Errors
/// If the file cannot be read.
pub fn read_body(path: &Path) -> Result<RequestBody, ReadBodyError> {
    let bytes = std::fs::read(path).map_err(|error| ReadBodyError { path: path.to_owned(), error })?;
    Ok(RequestBody::Exact(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Template>, TargetsError> {
        let folder = std::env::temp_dir();
        parse_targets(text, &"https://example.org/".parse().unwrap(), &folder)
    }

    #[test]
    fn requests_have_weights_headers_bodies_and_expectations() {
        let text = "# all of it\n3 GET /a   often\nAccept: text/html\nX: y:z\n\n\nPOST https://example.org/echo?x\n@100\n= echo\n\nPUT /up\n= 2  short\n";
        let all = parse(text).unwrap();
        let [get, post, put] = &all[..] else { panic!("{all:?}") };
        assert_eq!((get.weight, get.path.as_str()), (3, "/a"));
        assert_eq!(get.headers[1], ("X".to_owned(), "y:z".to_owned()));
        assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/echo?x"));
        assert_eq!((&post.body, post.expect), (&RequestBody::Bytes(100), Expect::Echo));
        assert_eq!((put.weight, put.expect), (1, Expect::Bytes(2)));
    }

    #[test]
    fn requests_need_no_blank_lines_between_them() {
        let text = "GET https://example.org/a\nDELETE /b\nX-ID: 7\n2 POST /c\n@5\n# a comment\nGET /d\n";
        let all = parse(text).unwrap();
        let told: Vec<_> =
            all.iter().map(|one| (one.method.as_str(), one.path.as_str(), one.weight)).collect();
        assert_eq!(told, [("GET", "/a", 1), ("DELETE", "/b", 1), ("POST", "/c", 2), ("GET", "/d", 1)]);
        assert_eq!((&all[1].headers[0].0[..], &all[2].body), ("X-ID", &RequestBody::Bytes(5)));
    }

    #[test]
    fn the_documented_example_is_parsed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("body.bin"), b"abc").unwrap();
        let example: Vec<&str> = include_str!("file.rs").lines().skip(3).take(11).collect();
        let text = example.join("\n").replace("//! ", "").replace("//!", "");
        let target = "https://localhost:8443/".parse().unwrap();
        let all = parse_targets(&text, &target, folder.path()).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].body, RequestBody::Exact(b"abc"[..].into()));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, reason) in [
            ("", 1, "no request"),
            ("# only\n", 1, "no request"),
            ("GET", 1, "METHOD PATH"),
            ("GET path", 1, "METHOD PATH"),
            ("0 GET /", 1, "weight"),
            ("GET /\n\nGET http://example.org/", 3, "not on the server"),
            ("GET /a b", 1, "%20"),
            ("GET /a HTTP/1.1", 1, "%20"),
            ("GET /\nX-\u{dc}: a", 2, "request GET /: the name of a header field"),
            ("GET /\nGET ", 2, "header field"),
            ("GET /\n\nGET /\u{fc}", 3, "the path must"),
            ("GET /\nConnection: close", 2, "the generator itself sets"),
            ("GET /\nnonsense", 2, "header field"),
            ("GET /\n= soon", 2, "= BYTES"),
            ("POST /\n@no/such/file", 2, "cannot read"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.reason.to_string().contains(reason), "{text:?}: {error}");
        }
    }
}
