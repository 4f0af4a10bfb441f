//! Listening needs Linux: elsewhere the start of a collector that listens fails with this reason.

use std::net::SocketAddr;

use serde_json::Value;

use crate::pint::Decoder;

pub mod config {
    //! The configuration of a collector that runs.

    use std::path::PathBuf;

    use serde::Deserialize;

    /// As far as it is looked at before the collector starts.
    #[derive(Debug, Clone, Deserialize)]
    pub struct Config {
        pub plan: Option<String>,
        pub topology: Option<PathBuf>,
    }
}

/// A running collector, of which there is none.
pub enum Live {}

impl Live {
    pub fn start(_: config::Config, _: Option<&Decoder>) -> Result<Live, String> {
        Err("listen, interface: collecting what arrives needs Linux; captures can be read here".into())
    }

    pub fn http(&self) -> Option<SocketAddr> {
        match *self {}
    }

    pub fn inputs(&self) -> &[String] {
        match *self {}
    }

    pub fn status(&self) -> Value {
        match *self {}
    }

    pub fn finish(self) -> Result<Value, String> {
        match self {}
    }
}
