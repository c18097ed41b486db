//! The server's side of a connection: requests in lines, and an answer to each.
//!
//! Everything is bounded: the bytes of a line, the time for it to arrive, and the time to take an answer.

use std::io::{self, BufRead, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::access::Access;
use super::protocol::{ControlRequest, ControlResponse, LINE_BYTES_MAX};

/// The longest time between two requests of a client, and for a request to arrive.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// The longest time for a client to take an answer.
const TAKING: Duration = Duration::from_secs(5);

/// Answers the requests of a client in succession, until its end. `answer` gets the permitted requests, and `send` the
/// lines of the answers.
///
/// # Errors
/// If reading or sending fails.
pub(super) fn converse(
    requests: &mut impl BufRead,
    (client, access): (&str, Access),
    mut answer: impl FnMut(&ControlRequest) -> ControlResponse,
    mut send: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    if access == Access::None {
        // At once, so clients without access do not use up connections.
        let reason = format!("{client} has no access: --control-group and --control-readers name who has");
        return send(&line(&ControlResponse::refused(reason)));
    }
    while let Some(read) = read_line(requests)? {
        let Ok(request) = read else {
            let reason = format!("a request has at most {LINE_BYTES_MAX} bytes");
            return send(&line(&ControlResponse::refused(reason)));
        };
        let response = match ControlRequest::parse(&request) {
            Ok(request) if request.is_write() && access < Access::Write => ControlResponse::refused(format!(
                "{client} may read and not change anything: --control-group names who may"
            )),
            Ok(request) => answer(&request),
            Err(reason) => ControlResponse::refused(reason),
        };
        send(&line(&response))?;
    }
    Ok(())
}

/// Sends a line within [`TAKING`], however slowly the client reads.
pub(super) fn send(mut stream: &UnixStream, mut line: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + TAKING;
    while !line.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => line = &line[sent..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn line(response: &ControlResponse) -> Vec<u8> {
    // Names and numbers only: nothing in it can fail to be written.
    let mut line = serde_json::to_vec(response).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A line has more than [`LINE_BYTES_MAX`] bytes.
struct TooLong;

/// Reads a line within [`IDLE`]; `None` at the end.
fn read_line(from: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
    let (deadline, mut line) = (Instant::now() + IDLE, Vec::new());
    loop {
        let buffer = from.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        line.extend_from_slice(&buffer[..end.unwrap_or(taken)]);
        from.consume(taken);
        if line.len() > LINE_BYTES_MAX {
            return Ok(Some(Err(TooLong)));
        }
        if end.is_some() {
            return Ok(Some(Ok(line)));
        }
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Answers the lines of a client like the control socket, for fuzzing: actions are added to `carried_out` instead of
/// being executed. The client may change things with `may_write`. Returns the answers.
pub(crate) fn answer_lines(mut input: &[u8], may_write: bool, carried_out: &mut Vec<String>) -> Vec<String> {
    let access = if may_write { Access::Write } else { Access::Read };
    let mut answers = Vec::new();
    let answer = |request: &ControlRequest| {
        carried_out.push(serde_json::to_string(request).unwrap_or_default());
        ControlResponse::done("done")
    };
    let send = |line: &[u8]| {
        answers.push(String::from_utf8_lossy(line).into_owned());
        Ok(())
    };
    // Reading from memory cannot fail.
    let _ = converse(&mut input, ("a client", access), answer, send);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_never_ends_is_refused_with_bounded_memory() {
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        let mut answers = Vec::new();
        converse(
            &mut endless,
            ("a client", Access::Write),
            |_| panic!("no request"),
            |line| {
                answers.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            },
        )
        .unwrap();
        assert!(matches!(&*answers, [answer] if answer.contains("at most 65536 bytes")), "{answers:?}");
    }

    #[test]
    fn an_answer_that_nobody_reads_is_given_up_in_time() {
        let (server, _client) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let error = send(&server, &vec![b'x'; 64 << 20]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        assert!(begun.elapsed() >= TAKING / 2, "not at once either");
    }

    #[test]
    fn a_reader_changes_nothing_and_is_told_so() {
        let mut carried_out = Vec::new();
        let input = b"{\"request\":\"status\"}\n{\"request\":\"drain\"}\nx\n{\"request\":\"mark\"";
        let answers = answer_lines(input, false, &mut carried_out);
        assert_eq!(carried_out, [r#"{"request":"status"}"#]);
        assert_eq!(answers.len(), 3, "{answers:?}");
        assert!(answers[1].contains("a client may read and not change anything"), "{answers:?}");
        assert!(answers[2].contains("this is not a request"), "{answers:?}");
    }
}
