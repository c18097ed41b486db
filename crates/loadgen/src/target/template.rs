//! Requests as the user describes them.

use std::sync::Arc;

use super::Scheme;
use crate::protocol::{RequestError, check_template};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with its query, beginning with `/`.
    pub path: String,
    /// Header fields. They replace the default field of the same name.
    pub headers: Vec<(String, String)>,
    pub body: RequestBody,
    pub expect: Expect,
    /// A status of the answer that is no failure, even from 400 up.
    pub expect_status: Option<u16>,
    /// Its frequency, relative to the others; at least 1.
    pub weight: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// This many letters. The size can change while the load runs.
    Bytes(usize),
    /// These bytes.
    Exact(Arc<[u8]>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// The length that the answer itself announces.
    #[default]
    Announced,
    Bytes(u64),
    /// The request's own body, byte for byte.
    Echo,
}

impl Template {
    /// A `GET` without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: RequestBody::Bytes(0),
            expect: Expect::Announced,
            expect_status: None,
            weight: 1,
        }
    }

    /// A `POST` with a body of `body_bytes` bytes.
    pub fn post(path: impl Into<String>, body_bytes: usize) -> Self {
        Self { method: "POST".to_owned(), body: RequestBody::Bytes(body_bytes), ..Self::get(path) }
    }

    /// Checks that it can be sent.
    ///
    /// # Errors
    /// What is wrong with it for a server of this scheme.
    pub fn check(&self, scheme: Scheme) -> Result<(), RequestError> {
        check_template(self, scheme)
    }
}
