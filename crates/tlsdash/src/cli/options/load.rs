//! `--load`: the load beside the proxy.

use std::str::FromStr;

use loadgen::{Plan, PlanError};

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
    /// The path that is asked for; `{bytes}` in it stands for the bytes of a response.
    pub(crate) path: String,
    pub(crate) scale: f64,
    pub(crate) speed: f64,
}

/// The text is no load.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadOptionError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{0} does not go with like=; there are path=/…, scale=FACTOR and speed=FACTOR")]
    Word(String),
}

impl FromStr for BuiltInLoad {
    type Err = LoadOptionError;

    fn from_str(text: &str) -> Result<Self, LoadOptionError> {
        let Some(rest) = text.strip_prefix("like=") else { return Ok(Self::Plan(Box::new(text.parse()?))) };
        let mut words = rest.split(',');
        let source = words.next().unwrap_or_default().to_owned();
        let mut like = LikeOption { source, path: "/".to_owned(), scale: 1.0, speed: 1.0 };
        for word in words {
            let refuse = || LoadOptionError::Word(records::text::clean::text(word));
            let factor = |text: &str| crate::value::factor(text).map_err(|_| refuse());
            match word.split_once('=') {
                Some(("path", path)) if path.starts_with('/') => path.clone_into(&mut like.path),
                Some(("scale", scale)) => like.scale = factor(scale)?,
                Some(("speed", speed)) => like.speed = factor(speed)?,
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
        let Ok(BuiltInLoad::Like(like)) = "like=a.journal@1m..,path=/bytes/{bytes},scale=0.5".parse() else {
            panic!("it is like a recording")
        };
        assert_eq!((&*like.source, &*like.path), ("a.journal@1m..", "/bytes/{bytes}"));
        assert!(like.scale < 0.6 && like.speed > 0.9);
        for text in ["like=a,rate=5", "like=a,path=x", "like=a,scale=0", "rate=x", "lik=a"] {
            assert!(text.parse::<BuiltInLoad>().is_err(), "{text}");
        }
    }
}
