//! Sends the content of a request on its stream, or what a client sends in a tunnel.

use std::mem;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use records::metrics::RequestFailure;

use super::{Http2Exchange, passed};
use crate::upstream::content::ContentSource;
use crate::upstream::content::Piece;

/// Most content that is kept to be sent again, if the upstream refuses the stream.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of content for which a frame is sent before more of it is looked for.
const SENT_BYTES_MIN: usize = 16 << 10;

impl Http2Exchange {
    /// Begins a tunnel.
    pub(crate) fn open_tunnel(&mut self, source: Option<ContentSource>) {
        self.content.open_tunnel(source);
        (self.send, self.content_left) = (self.withheld.take(), None);
    }

    /// Sends what the client has sent in a tunnel; ready once the upstream gets no more.
    pub(crate) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestFailure>> {
        let pumped = self.pump(cx);
        self.settle_held();
        pumped?;
        if self.send.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends what the client has sent of its content. Short pieces are joined: upstreams bound the frames for little content.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), RequestFailure> {
        while self.send.is_some() {
            if self.end.is_none() && self.unsent.len() < SENT_BYTES_MIN {
                match self.content.poll_piece(cx) {
                    Poll::Ready(piece) => {
                        self.take(piece?);
                        continue;
                    }
                    Poll::Pending if self.unsent.is_empty() => return Ok(()),
                    // The client's connection passes one piece on at a time.
                    Poll::Pending if !mem::replace(&mut self.has_looked, true) => {
                        cx.waker().wake_by_ref();
                        return Ok(());
                    }
                    Poll::Pending => {}
                }
            }
            match self.poll_send(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(true) => self.content.note_moved(),
                // The upstream has ended the stream, and its response tells why.
                Poll::Ready(false) => (self.send, self.unsent) = (None, BytesMut::new()),
            }
        }
        Ok(())
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Data(data) => {
                self.keep(&data);
                self.unsent.extend_from_slice(&data);
                self.has_looked = false;
                if !self.content.is_at_end() {
                    return;
                }
                self.end = Some(HeaderMap::new());
            }
            Piece::Trailers(trailers) => {
                self.kept = None;
                let rules = &self.request.client().worker.shared.request_rules;
                self.end = Some(passed(trailers, |name| !rules.replace(name)));
            }
            Piece::End => self.end = Some(HeaderMap::new()),
        }
        self.content.stop();
    }

    /// Keeps content for another try.
    fn keep(&mut self, data: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        if kept.len() + data.len() <= KEPT_BYTES_MAX && self.held.may_take() {
            kept.extend_from_slice(data);
        } else {
            self.kept = None;
        }
    }

    /// Sends as much of `unsent` as the stream's window takes, or the end; false if the stream takes nothing any more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(send) = &mut self.send else { return Poll::Ready(false) };
        if self.unsent.is_empty() {
            let ended = match self.end.take().filter(|trailers| !trailers.is_empty()) {
                Some(trailers) => send.send_trailers(trailers),
                None => send.send_data(Bytes::new(), true),
            };
            self.send = None;
            return Poll::Ready(ended.is_ok());
        }
        send.reserve_capacity(self.unsent.len());
        let mut room = send.capacity();
        if room == 0 {
            room = match ready!(send.poll_capacity(cx)) {
                Some(Ok(room)) => room,
                None | Some(Err(_)) => return Poll::Ready(false),
            };
        }
        let data = self.unsent.split_to(room.min(self.unsent.len())).freeze();
        self.passed_bytes += data.len();
        let is_last = self.unsent.is_empty() && self.end.as_ref().is_some_and(HeaderMap::is_empty);
        let is_taken = send.send_data(data, is_last).is_ok();
        if is_last {
            self.send = None;
        }
        Poll::Ready(is_taken)
    }
}
