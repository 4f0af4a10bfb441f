//! Offered load: what share of which capacity the generated flows take, and how often they therefore arrive.
//!
//! Mean gap = bytes per flow * 8 / (load * rate). The traffic generator of the HPCC authors counts payload bytes
//! against the rate of the host's link; others count what is on the wire. With 48 B of header on 1000 B of payload
//! and 60 B for its acknowledgement, a payload load of 50 % is about 55 % of the wire.

use super::hosts::select;
use super::sizes::{self, SizeDistribution};
use super::spec::{WorkloadContext, WorkloadError};
use crate::files;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Rate};

const COUNTS: &[(&str, &str)] = &[
    ("payload", "payload bytes, as the HPCC authors count"),
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
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// More than 0, at most 1.
    pub share: f64,
    pub counts: LoadCounts,
    /// The capacity that the share is of, shared equally by the senders; none: the senders' own links.
    pub capacity: Option<Rate>,
}

impl Load {
    pub fn read(p: &mut Parameters, default: f64, help: &'static str) -> Load {
        let share = p.number("load", default, (1e-6, 1.0), help);
        let counts = p.choice("load_counts", "payload", COUNTS, "Which bytes of a flow count as load.");
        let capacity = p.rate_or_auto(
            "capacity",
            "What the load is a share of, such as the rate of the uplinks together; auto: the links of the sending \
             hosts together.",
        );
        if capacity == Some(Rate(0)) {
            p.complain("capacity", "must be more than zero".into());
        }
        let counts = match counts {
            "wire" => LoadCounts::Wire,
            "wire-and-acks" => LoadCounts::WireAndAcks,
            _ => LoadCounts::Payload,
        };
        Load { share, counts, capacity }
    }

    /// Mean bytes of a flow as this load counts them.
    pub fn bytes_per_flow(&self, sizes: &SizeDistribution, cx: &WorkloadContext) -> f64 {
        let extra = match self.counts {
            LoadCounts::Payload => return sizes.mean(),
            LoadCounts::Wire => cx.header,
            LoadCounts::WireAndAcks => cx.header + cx.ack,
        };
        sizes.mean() + extra as f64 * sizes.mean_packets(cx.mtu)
    }

    /// What one of `senders` hosts may send, in bit/s, load taken into account.
    pub fn host_rate(&self, host: HostId, senders: usize, cx: &WorkloadContext) -> f64 {
        let full = match self.capacity {
            Some(capacity) => capacity.0 as f64 / senders as f64,
            None => cx.host_rate[host as usize].0 as f64,
        };
        self.share * full
    }

    /// What `hosts` may send together, in bit/s, load taken into account.
    pub fn whole_rate(&self, hosts: &[HostId], cx: &WorkloadContext) -> f64 {
        hosts.iter().map(|&host| self.host_rate(host, hosts.len(), cx)).sum()
    }
}

/// Mean time between flows of `bytes` at `rate` bit/s, in picoseconds.
pub fn mean_gap(bytes: f64, rate: f64) -> f64 {
    bytes * 8e12 / rate
}

/// Where flow sizes come from: a table by name, a file, or one size.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// A built-in name, or the path of a file.
    Table(String),
    Fixed(Bytes),
}

const SIZES_HELP: &str = "Flow sizes: websearch, fb-hadoop, ali-storage, google-rpc, imc10, datamining, or a file \
                          with lines \"size cumulative\".";
const SIZE_HELP: &str = "One size for every flow; auto: drawn from `sizes`.";

impl Sizes {
    /// Reads `size` or `sizes`, where flows are drawn from a table unless the user says otherwise.
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

    /// Reads `size` or `sizes`, where all flows have one size unless the user says otherwise.
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
        if size.0 > sizes::MOST_BYTES {
            p.complain("size", format!("{size} is above the limit of 1 TB"));
        }
        Sizes::Fixed(size)
    }

    /// The distribution; the error names the key, and file and line where there is a file.
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
        let bytes = files::read(&path, files::MOST_BYTES)
            .map_err(|message| fail(format!("{}: {message}", path.display())))?;
        SizeDistribution::from_bytes(&bytes, &path.display().to_string()).map_err(|e| fail(e.to_string()))
    }
}

/// The key `hosts`, and the hosts that it names; at least `least` of them.
pub fn participants(
    text: &str,
    key: &'static str,
    least: usize,
    cx: &WorkloadContext,
) -> Result<Vec<HostId>, WorkloadError> {
    let hosts = select(text, cx).map_err(|message| WorkloadError::new(key, message))?;
    if hosts.len() < least {
        let found = hosts.len();
        return Err(WorkloadError::new(key, format!("needs at least {least} hosts, found {found}")));
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    fn load(share: f64, counts: LoadCounts) -> Load {
        Load { share, counts, capacity: None }
    }

    /// Flows a second of one host with links of `gbps`.
    fn flows_per_second(name: &str, load: &Load, gbps: u64, cx: &WorkloadContext) -> f64 {
        let rate = [Rate::from_gbps(gbps)];
        let cx = WorkloadContext { host_rate: &rate, header: 40, mtu: 1460, ..*cx };
        let bytes = load.bytes_per_flow(&SizeDistribution::named(name).unwrap(), &cx);
        1e12 / mean_gap(bytes, load.host_rate(0, 1, &cx))
    }

    #[test]
    fn half_payload_load_at_100_gbps_gives_the_rates_of_the_hpcc_generator() {
        let published = [
            ("websearch", 3652.3),
            ("fb-hadoop", 51_901.0),
            ("ali-storage", 152_925.0),
            ("google-rpc", 2_161_417.0),
        ];
        testing::with_hosts(4, |cx| {
            for (name, rate) in published {
                let ours = flows_per_second(name, &load(0.5, LoadCounts::Payload), 100, cx);
                assert!((ours / rate - 1.0).abs() < 2e-5, "{name}: {ours}");
            }
        });
    }

    #[test]
    fn wire_load_of_60_percent_at_10_gbps_gives_the_rates_of_the_phost_generator() {
        testing::with_hosts(4, |cx| {
            for (name, rate) in [("imc10", 3736.7), ("datamining", 97.72)] {
                let ours = flows_per_second(name, &load(0.6, LoadCounts::Wire), 10, cx);
                assert!((ours / rate - 1.0).abs() < 1e-4, "{name}: {ours}");
            }
        });
    }

    #[test]
    fn headers_and_acknowledgements_count_when_they_are_asked_to() {
        testing::with_hosts(4, |cx| {
            let sizes = SizeDistribution::constant(2500);
            let bytes = |counts| load(0.5, counts).bytes_per_flow(&sizes, cx);
            assert_eq!(bytes(LoadCounts::Payload), 2500.0);
            assert_eq!(bytes(LoadCounts::Wire), 2500.0 + 3.0 * 48.0);
            assert_eq!(bytes(LoadCounts::WireAndAcks), 2500.0 + 3.0 * 108.0);
        });
    }

    #[test]
    fn a_stated_capacity_is_shared_by_the_senders() {
        testing::with_hosts(4, |cx| {
            let load = Load { capacity: Some(Rate::from_gbps(40)), ..load(0.5, LoadCounts::Payload) };
            assert_eq!(load.host_rate(0, 4, cx), 5e9);
            assert_eq!(load.whole_rate(&[0, 1, 2, 3], cx), 20e9);
        });
    }
}
