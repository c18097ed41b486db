//! Control frames: resets, settings, pings, GOAWAY and window updates.

use std::mem;

use records::values::LoadEvent;

use super::receive::ReceiveContext;
use super::response::StreamError;
use super::{ConnectionError, Http2Session};
use crate::protocol::{Failure, RequestOutcome};
use http_codec::frame::{self, ErrorCode, FrameHeader, WINDOW_MAX, flag, kind, setting};

impl Http2Session {
    pub(super) fn on_rst_stream(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        self.check_begun(head.id)?;
        let code = ErrorCode(
            number(payload).ok_or_else(|| ConnectionError::frame_size("a reset of the wrong size"))?,
        );
        let Some(stream) = self.streams.get(&head.id) else { return Ok(()) };
        let has_begun = stream.incoming.has_begun();
        let event = if has_begun { LoadEvent::Short } else { LoadEvent::Reset };
        let failure = Failure::new(event, format!("the server reset the stream: {code}"));
        let is_unheard = code == ErrorCode::REFUSED_STREAM && !has_begun;
        let outcome =
            if is_unheard { RequestOutcome::Unprocessed(failure) } else { RequestOutcome::Failed(failure) };
        self.end_stream(head.id, outcome, taking);
        Ok(())
    }

    pub(super) fn on_settings(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        if head.id != 0 {
            return Err(ConnectionError::protocol("settings of a stream"));
        }
        let (settings, []) = payload.as_chunks::<6>() else {
            return Err(ConnectionError::frame_size("settings of the wrong size"));
        };
        if head.has(flag::ACK) {
            let is_empty = payload.is_empty();
            return if is_empty {
                Ok(())
            } else {
                Err(ConnectionError::frame_size("an acknowledgement of the wrong size"))
            };
        }
        self.inflow.answer()?;
        if !mem::replace(&mut self.inflow.has_settings, true) {
            self.streams_max = usize::MAX;
        }
        let window_before = self.stream_window;
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                setting::HEADER_TABLE_SIZE => self.indexed.allow(value as usize),
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(ConnectionError::protocol("a server that wants to be pushed to"));
                }
                setting::MAX_CONCURRENT_STREAMS => self.streams_max = value as usize,
                setting::INITIAL_WINDOW_SIZE => {
                    self.stream_window = i64::from(value);
                    if self.stream_window > WINDOW_MAX {
                        return Err(ConnectionError::flow_control("a window that is too large"));
                    }
                }
                setting::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                    return Err(ConnectionError::protocol("a size of frames that cannot be"));
                }
                _ => {}
            }
        }
        let wider = self.stream_window - window_before;
        if wider != 0 {
            for stream in self.streams.values_mut() {
                stream.send_window += wider;
                if stream.send_window > WINDOW_MAX {
                    return Err(ConnectionError::flow_control("a window that is too large"));
                }
            }
        }
        frame::head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        Ok(())
    }

    pub(super) fn on_ping(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        if head.id != 0 {
            return Err(ConnectionError::protocol("a ping on a stream"));
        }
        if payload.len() != 8 {
            return Err(ConnectionError::frame_size("a ping of the wrong size"));
        }
        if !head.has(flag::ACK) {
            self.inflow.answer()?;
            frame::head(&mut self.out, payload.len(), kind::PING, flag::ACK, 0);
            self.out.extend_from_slice(payload);
        }
        Ok(())
    }

    pub(super) fn on_goaway(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        if head.id != 0 {
            return Err(ConnectionError::protocol("a stream that goes away"));
        }
        let (Some(last_id), Some(code)) =
            (payload.get(..4).and_then(number), payload.get(4..8).and_then(number))
        else {
            return Err(ConnectionError::frame_size("a farewell that is too short"));
        };
        self.is_going_away = true;
        let last_id = last_id & frame::ID_MAX;
        let example = format!("the server went away: {}", ErrorCode(code));
        for (_, stream) in self.streams.extract_if(|id, _| *id > last_id) {
            let failure = Failure::new(LoadEvent::Reset, example.clone());
            taking.ended.push((stream.request, RequestOutcome::Unprocessed(failure)));
        }
        Ok(())
    }

    pub(super) fn on_window_update(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        let wider =
            number(payload).ok_or_else(|| ConnectionError::frame_size("a wider window of the wrong size"))?;
        let wider = i64::from(wider & frame::ID_MAX);
        if head.id == 0 {
            self.send_window += wider;
            return match wider {
                0 => Err(ConnectionError::protocol("a window that is wider by nothing")),
                _ if self.send_window > WINDOW_MAX => {
                    Err(ConnectionError::flow_control("a window that is too large"))
                }
                _ => Ok(()),
            };
        }
        self.check_begun(head.id)?;
        let Some(stream) = self.streams.get_mut(&head.id) else { return Ok(()) };
        stream.send_window += wider;
        if wider == 0 || stream.send_window > WINDOW_MAX {
            self.refuse(head.id, StreamError("a window that cannot be"), taking);
        }
        Ok(())
    }
}

/// A payload that is a number.
fn number(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}
