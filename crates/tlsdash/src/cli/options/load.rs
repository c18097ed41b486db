//! `--load`: the load beside the proxy.

use std::str::FromStr;

use loadgen::{Plan, PlanError, Protocol};
use proxy_core::TlsSettings;

use crate::error::usage;

/// What the load beside the proxy does.
#[derive(Clone, Debug)]
pub(crate) enum BuiltInLoad {
    Plan(Box<Plan>),
    /// As recorded traffic did, round after round.
    Like(LikeOption),
}

/// A recording, and how its traffic is sent again.
#[derive(Clone, Debug)]
pub(crate) struct LikeOption {
    pub(crate) source: String,
    /// The path that is asked for [default: /]; `{bytes}` in it stands for the bytes of a response.
    pub(crate) path: Option<String>,
    pub(crate) scale: f64,
    pub(crate) speed: f64,
    /// Whether each request goes to a route, as recorded.
    pub(crate) with_paths: bool,
}

/// The text is no load.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadOptionError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{0} does not go with like=; there are path=/…, with-paths, scale=FACTOR and speed=FACTOR")]
    Word(String),
}

impl BuiltInLoad {
    /// The load speaks HTTP/2 only if the proxy agrees to it.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn check(&self, settings: &TlsSettings) -> anyhow::Result<()> {
        let speaks_http2 = settings.alpn.iter().any(|protocol| protocol == "h2");
        match self {
            Self::Plan(plan) if matches!(plan.protocol, Protocol::Http2 { .. }) && !speaks_http2 => {
                Err(usage(
                    "http2=on in the load plan needs h2 in ALPN: give --mode http, or --alpn h2 in TCP mode",
                ))
            }
            Self::Plan(_) | Self::Like(_) => Ok(()),
        }
    }
}

impl FromStr for BuiltInLoad {
    type Err = LoadOptionError;

    fn from_str(text: &str) -> Result<Self, LoadOptionError> {
        let Some(rest) = text.strip_prefix("like=") else { return Ok(Self::Plan(Box::new(text.parse()?))) };
        let mut words = rest.split(',');
        let source = words.next().unwrap_or_default().to_owned();
        let mut like = LikeOption { source, path: None, scale: 1.0, speed: 1.0, with_paths: false };
        for word in words {
            let refuse = || LoadOptionError::Word(records::text::clean::text(word));
            let factor = |text: &str| crate::value::factor(text).map_err(|_| refuse());
            match word.split_once('=') {
                Some(("path", path)) if path.starts_with('/') => like.path = Some(path.to_owned()),
                Some(("scale", scale)) => like.scale = factor(scale)?,
                Some(("speed", speed)) => like.speed = factor(speed)?,
                None if word == "with-paths" => like.with_paths = true,
                _ => return Err(refuse()),
            }
        }
        Ok(Self::Like(like))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_plan_or_like_a_recording() {
        assert!(matches!("rate=5,resume=80%".parse(), Ok(BuiltInLoad::Plan(plan)) if plan.rate.is_some()));
        let Ok(BuiltInLoad::Like(like)) =
            "like=a.journal@1m..,path=/bytes/{bytes},scale=0.5,with-paths".parse()
        else {
            panic!("it is like a recording")
        };
        assert_eq!((&*like.source, like.path.as_deref()), ("a.journal@1m..", Some("/bytes/{bytes}")));
        assert!(like.scale < 0.6 && like.speed > 0.9 && like.with_paths);
        for text in
            ["like=a,rate=5", "like=a,with-paths=1", "like=a,path=x", "like=a,scale=0", "rate=x", "lik=a"]
        {
            assert!(text.parse::<BuiltInLoad>().is_err(), "{text}");
        }
    }
}
