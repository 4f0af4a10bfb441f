//! Offered load: the generated flows' share of a capacity, and the resulting arrival rate.
//!
//! Mean gap = bytes per flow * 8 / (load * rate). The traffic generator of the HPCC authors relates payload
//! bytes to the rate of the host's link; others count the bytes on the wire. With 48 B of header on 1000 B of
//! payload and 60 B for its acknowledgement, a payload load of 50 % is about 55 % of the link.

use super::hosts::select;
use super::sizes::{self, SizeDistribution};
use super::spec::{WorkloadContext, WorkloadError};
use crate::files;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Rate};

const COUNTS: &[(&str, &str)] = &[
    ("payload", "payload bytes, as in the HPCC authors' generator"),
    ("wire", "payload and the headers of its packets"),
    ("wire-and-acks", "payload, headers, and one acknowledgement per packet"),
];

/// Which bytes of a flow count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadCounts {
    Payload,
    Wire,
    WireAndAcks,
}

/// A share of a capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// More than 0, at most 1.
    pub share: f64,
    pub counts: LoadCounts,
    /// The capacity to which the share relates, divided equally among the senders; none: the senders' own
    /// links.
    pub capacity: Option<Rate>,
}

impl Load {
    pub fn read(p: &mut Parameters, default: f64, help: &'static str) -> Load {
        let share = p.number("load", default, (1e-6, 1.0), help);
        let counts = p.choice("load_counts", "payload", COUNTS, "The bytes of a flow that count as load.");
        let capacity = p.rate_or_auto(
            "capacity",
            "Capacity to which the load relates, such as the total rate of the uplinks; auto: the total \
             rate of the links of the sending hosts.",
        );
        if capacity == Some(Rate(0)) {
            p.complain("capacity", "must be greater than 0".into());
        }
        let counts = match counts {
            "wire" => LoadCounts::Wire,
            "wire-and-acks" => LoadCounts::WireAndAcks,
            _ => LoadCounts::Payload,
        };
        Load { share, counts, capacity }
    }

    /// What the load of a workload with these senders is a share of; `whose`: what the senders are called.
    pub fn terms(&self, senders: usize, whose: &'static str) -> LoadTerms {
        LoadTerms { load: *self, senders, whose, apart: None }
    }

    /// Mean bytes of a flow as counted for this load.
    pub fn bytes_per_flow(&self, sizes: &SizeDistribution, cx: &WorkloadContext) -> f64 {
        let extra = match self.counts {
            LoadCounts::Payload => return sizes.mean(),
            LoadCounts::Wire => cx.header,
            LoadCounts::WireAndAcks => cx.header + cx.ack,
        };
        sizes.mean() + extra as f64 * sizes.mean_packets(cx.mtu)
    }

    /// The rate in bit/s at which one of `senders` hosts sends on average.
    pub fn host_rate(&self, host: HostId, senders: usize, cx: &WorkloadContext) -> f64 {
        let full = match self.capacity {
            Some(capacity) => capacity.0 as f64 / senders as f64,
            None => cx.host_rate[host as usize].0 as f64,
        };
        self.share * full
    }

    /// The rate in bit/s at which `hosts` send on average, in total.
    pub fn whole_rate(&self, hosts: &[HostId], cx: &WorkloadContext) -> f64 {
        hosts.iter().map(|&host| self.host_rate(host, hosts.len(), cx)).sum()
    }
}

/// What a configured load is a share of, in words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadTerms {
    load: Load,
    senders: usize,
    whose: &'static str,
    /// What is sent in addition and is not part of the load.
    apart: Option<&'static str>,
}

impl LoadTerms {
    /// These terms of a workload that sends something else in addition.
    pub fn without(self, what: &'static str) -> LoadTerms {
        LoadTerms { apart: Some(what), ..self }
    }

    /// Such as `load 0.4 of the links of 4 hosts`.
    pub fn text(&self) -> String {
        let of = match self.load.capacity {
            Some(capacity) => format!("a capacity of {capacity}"),
            None => format!("the links of {} {}", self.senders, self.whose),
        };
        let counts = match self.load.counts {
            LoadCounts::Payload => None,
            LoadCounts::Wire => Some("headers included".to_string()),
            LoadCounts::WireAndAcks => Some("headers and acknowledgements included".to_string()),
        };
        let apart = self.apart.map(|what| format!("{what} not included"));
        let more: Vec<String> = counts.into_iter().chain(apart).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        format!("load {} of {of}{more}", self.load.share)
    }
}

/// Mean time between flows of `bytes` at `rate` bit/s, in picoseconds.
pub fn mean_gap(bytes: f64, rate: f64) -> f64 {
    bytes * 8e12 / rate
}

/// Source of flow sizes: a named table, a file, or one size.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// A built-in name, or the path of a file.
    Table(String),
    Fixed(Bytes),
}

const SIZES_HELP: &str = "Flow sizes: websearch, fb-hadoop, ali-storage, google-rpc, imc10, datamining, w1 to w5, or a file \
                          with lines \"size cumulative\".";
const SIZE_HELP: &str = "Size of every flow; auto: drawn from `sizes`.";

impl Sizes {
    /// Reads `size` or `sizes`; by default sizes are drawn from a table.
    pub fn read_table(p: &mut Parameters, default: &'static str) -> Sizes {
        let Some(size) = p.bytes_or_auto("size", SIZE_HELP) else {
            let name = p.text("sizes", Some(default), SIZES_HELP);
            return Sizes::Table(name.unwrap_or_else(|| default.to_string()));
        };
        if p.text("sizes", None, SIZES_HELP).is_some() {
            p.complain("size", "give either size or sizes".into());
        }
        Sizes::fixed(p, size)
    }

    /// Reads `size` or `sizes`; by default all flows have one size.
    pub fn read_fixed(p: &mut Parameters, default: Bytes) -> Sizes {
        let Some(name) = p.text("sizes", None, SIZES_HELP) else {
            let size = p.bytes("size", default, "Size of each flow, unless `sizes` is given.");
            return Sizes::fixed(p, size);
        };
        if p.bytes_or_auto("size", SIZE_HELP).is_some() {
            p.complain("size", "give either size or sizes".into());
        }
        Sizes::Table(name)
    }

    fn fixed(p: &mut Parameters, size: Bytes) -> Sizes {
        if size.0 == 0 {
            p.complain("size", "a flow needs at least one byte".into());
        }
        if size.0 > sizes::MAX_BYTES {
            p.complain("size", format!("{size} is above the limit of 1 TB"));
        }
        Sizes::Fixed(size)
    }

    /// Returns the distribution. The error names the key, and file and line if there is a file.
    pub fn resolve(&self, cx: &WorkloadContext) -> Result<SizeDistribution, WorkloadError> {
        let name = match self {
            Sizes::Fixed(size) => return Ok(SizeDistribution::constant(size.0)),
            Sizes::Table(name) => name,
        };
        let fail = |message| WorkloadError::new("sizes", message);
        let path = cx.base_dir.join(name);
        let like_a_file = name.contains(['/', '\\', '.']);
        if SizeDistribution::names().any(|known| known == name) || !(like_a_file || path.is_file()) {
            let hint = " or give a file with lines \"size cumulative\"";
            return SizeDistribution::named(name).map_err(|message| fail(message + hint));
        }
        let bytes = files::read(&path, files::MAX_BYTES)
            .map_err(|message| fail(format!("{}: {message}", path.display())))?;
        SizeDistribution::from_bytes(&bytes, &path.display().to_string()).map_err(|e| fail(e.to_string()))
    }
}

/// Reads the key `hosts` and returns the hosts that it names, at least `min` of them.
pub fn participants(
    text: &str,
    key: &'static str,
    min: usize,
    cx: &WorkloadContext,
) -> Result<Vec<HostId>, WorkloadError> {
    let hosts = select(text, cx).map_err(|message| WorkloadError::new(key, message))?;
    if hosts.len() < min {
        let found = hosts.len();
        return Err(WorkloadError::new(key, format!("needs at least {min} hosts, found {found}")));
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests;
