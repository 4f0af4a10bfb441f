//! The configuration of a live collector: inputs, who may send, limits, outputs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;

use crate::packet::Markers;

/// The configuration; names are those of the file and of the command's options.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `udp:PORT` (loopback) or `udp:ADDRESS:PORT`.
    pub listen: Vec<String>,
    /// Names of network interfaces.
    pub interface: Vec<String>,
    /// Networks whose datagrams are taken; required to listen beyond the loopback.
    pub allow: Vec<String>,
    pub memory_bytes: usize,
    pub shards: usize,
    pub interval_s: f64,
    pub int_dscp: Option<u8>,
    pub int_port: Option<u16>,
    pub int_gre: Option<u16>,
    pub report_ports: Option<Vec<u16>>,
    pub pint_ipv4_id: bool,
    pub pint_flow_label: bool,
    /// The text of PINT's plan, and of its topology.
    pub plan: Option<String>,
    pub topology: Option<PathBuf>,
    /// Where HTTP listens, with `/metrics`: `:9464` (loopback) or `ADDRESS:PORT`.
    pub prometheus: Option<String>,
    /// URL that OTLP metrics are posted to.
    pub otlp: Option<String>,
    /// Folder of the tables.
    pub out: Option<PathBuf>,
    /// File of the checkpoint.
    pub checkpoint: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: Vec::new(),
            interface: Vec::new(),
            allow: Vec::new(),
            memory_bytes: 256_000_000,
            shards: 1,
            interval_s: 5.0,
            int_dscp: None,
            int_port: None,
            int_gre: None,
            report_ports: None,
            pint_ipv4_id: false,
            pint_flow_label: false,
            plan: None,
            topology: None,
            prometheus: None,
            otlp: None,
            out: None,
            checkpoint: None,
        }
    }
}

impl Config {
    pub fn markers(&self) -> Markers {
        let usual = Markers::default();
        Markers {
            int_dscp: self.int_dscp.or(usual.int_dscp),
            int_port: self.int_port.or(usual.int_port),
            int_gre: self.int_gre.or(usual.int_gre),
            report_ports: self.report_ports.clone().unwrap_or(usual.report_ports),
            pint_ipv4_id: self.pint_ipv4_id,
            pint_flow_label: self.pint_flow_label,
            ..Markers::default()
        }
    }
}

/// The addresses of `udp:PORT` (both loopbacks) or `udp:ADDRESS:PORT`.
pub fn listen_addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let wrong = || {
        format!(
            "listen: expected udp:PORT or udp:ADDRESS:PORT such as udp:6000 or udp:[::1]:6000, found {text:?}"
        )
    };
    let place = text.strip_prefix("udp:").ok_or_else(wrong)?;
    if let Ok(port) = place.parse::<u16>() {
        return Ok(vec![
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port),
        ]);
    }
    Ok(vec![place.parse().map_err(|_| wrong())?])
}

/// The address of `:PORT` (loopback) or `ADDRESS:PORT`.
pub fn http_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').and_then(|port| port.parse::<u16>().ok());
    let loopback = port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    loopback
        .map_or_else(|| text.parse(), Ok)
        .map_err(|_| format!("prometheus: expected :PORT or ADDRESS:PORT such as :9464, found {text:?}"))
}

/// A network such as 10.0.0.0/8 or fd00::/8; an address alone is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: u128,
    v4: bool,
    bits: u32,
}

impl Network {
    pub fn parse(text: &str) -> Result<Network, String> {
        let wrong = || format!("allow: expected a network such as 10.0.0.0/8 or fd00::/8, found {text:?}");
        let (address, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let (value, v4) = as_number(address);
        let all = if v4 { 32 } else { 128 };
        let length = length.map_or(Ok(all), |text| text.parse().map_err(|_| wrong()))?;
        if length > all {
            return Err(wrong());
        }
        Ok(Network { address: value, v4, bits: all - length })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let (value, v4) = as_number(address);
        v4 == self.v4 && (value ^ self.address).checked_shr(self.bits).unwrap_or(0) == 0
    }
}

fn as_number(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), true),
        IpAddr::V6(address) => (address.into(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "::1", "1.2.3.4"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()));
            assert!(!network.contains(outside.parse().unwrap()));
        }
        assert!(Network::parse("10.0.0.0/33").unwrap_err().contains("10.0.0.0/33"));
    }

    #[test]
    fn a_port_alone_is_on_the_loopback() {
        assert!(listen_addresses("udp:6000").unwrap().iter().all(|address| address.ip().is_loopback()));
        assert_eq!(listen_addresses("udp:[::]:6000").unwrap(), ["[::]:6000".parse().unwrap()]);
        assert!(listen_addresses("tcp:1").unwrap_err().contains("tcp:1"));
        assert!(http_address(":9464").unwrap().ip().is_loopback());
        assert!(http_address("9464").is_err());
    }
}
