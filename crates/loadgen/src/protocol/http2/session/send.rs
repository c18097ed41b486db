//! Sending: requests and their bodies.

use super::{Http2Session, Stream};
use crate::protocol::Request;
use crate::protocol::http2::request::Http2Request;
use http_codec::frame::{self, flag, kind};

/// Most bytes of bodies written ahead.
const AHEAD_BYTES: usize = 64 * 1024;

impl Http2Session {
    /// Opens a stream for a request; the server must have room for it.
    pub(super) fn open_stream(&mut self, request: Request, prepared: &Http2Request) {
        let id = self.next_id;
        self.next_id += 2;
        self.carried += 1;
        let at = self.out.len();
        // Most blocks are short and take one frame, whose head is written once the length is known.
        frame::head(&mut self.out, 0, kind::HEADERS, 0, id);
        prepared.fields.write(&mut self.indexed, &mut self.out);
        let is_all = prepared.body.is_empty();
        let len = self.out.len() - at - frame::HEAD_BYTES;
        if len > frame::PAYLOAD_BYTES_MAX {
            let block = self.out.split_off(at + frame::HEAD_BYTES);
            self.out.truncate(at);
            frame::headers(&mut self.out, id, &block, is_all);
        } else {
            let [_, high, middle, low] = (len as u32).to_be_bytes();
            self.out[at..at + 3].copy_from_slice(&[high, middle, low]);
            self.out[at + 4] = flag::END_HEADERS | if is_all { flag::END_STREAM } else { 0 };
        }
        if !is_all {
            self.sending.push_back(id);
        }
        let stream = Stream {
            request,
            body: prepared.body.clone(),
            send_window: self.stream_window,
            incoming: super::Response::default(),
        };
        self.streams.insert(id, stream);
    }

    /// Writes as much of the bodies as the windows allow, up to a bound.
    pub(super) fn pump(&mut self) {
        let mut blocked = 0;
        while self.out.len() < AHEAD_BYTES
            && self.send_window > 0
            && blocked < self.sending.len()
            && let Some(id) = self.sending.pop_front()
        {
            // The stream may have ended already.
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let window = usize::try_from(self.send_window.min(stream.send_window)).unwrap_or(0);
            let len = stream.body.len().min(window).min(frame::PAYLOAD_BYTES_MAX);
            if len > 0 {
                blocked = 0;
                let piece = stream.body.split_to(len);
                let flags = if stream.body.is_empty() { flag::END_STREAM } else { 0 };
                frame::head(&mut self.out, len, kind::DATA, flags, id);
                self.out.extend_from_slice(&piece);
                stream.send_window -= len as i64;
                self.send_window -= len as i64;
            } else {
                blocked += 1;
            }
            if !stream.body.is_empty() {
                self.sending.push_back(id);
            }
        }
    }
}
