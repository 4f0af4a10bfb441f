//! A job as a file spells it out: GOAL, or Chakra's execution traces. Rank r is the r-th of the job's hosts.
//!
//! A computation takes its time on a stream of its rank. A message ends at its receiver when its last byte
//! has arrived, and is matched with the oldest receive of its source and tag. The network takes the place of
//! LogGOPS' L, g and G; o and O are none. With `network = "loggops"` there are no messages: [`loggops`] says when ranks end.
//!
//! Source: Hoefler et al., GOAL, ICPP 2009; mlcommons/chakra.

use super::WorkloadParameters;
use super::graph::listed::SendEnds;
use super::graph::source::GraphSource;
use super::graph::{JobGraph, ScaleUp, Seats, Work, seats};
use super::import::{self, Choices, Format, Roofline};
use super::loggops::{self, Machine};
use super::placement::Placement;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

const FORMATS: &[(&str, &str)] = &[
    ("auto", "by the file's name: .goal or .bin, .et"),
    ("goal", "GOAL, text or binary"),
    ("chakra", "Chakra execution traces, a file a rank"),
];
const SEND_ENDS: &[(&str, &str)] =
    &[("posted", "when it has been handed to the NIC"), ("acked", "when all of it is acknowledged")];
const DEPENDENCIES: &[(&str, &str)] = &[
    ("data", "nodes wait for their data dependencies, as in ASTRA-sim"),
    ("data+ctrl", "and for their control dependencies"),
];

const NETWORKS: &[(&str, &str)] = &[
    ("packets", "messages are flows on the scenario's network"),
    ("loggops", "no messages: ranks end when LogGOPSim ends them, by `machine`; the network is not used"),
];
/// LogGOPSim's own.
const MACHINE: &str = "L=2500,o=1500,g=1000,G=6,O=0,S=65535";

/// Keys of a job of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFileSpec {
    file: Option<String>,
    format: &'static str,
    groups: Option<String>,
    send_ends: &'static str,
    dependencies: &'static str,
    stream_order: bool,
    /// None: the durations of computations count.
    roofline: Option<Roofline>,
    /// None: messages are packets.
    machine: Option<Machine>,
    per_host: u32,
    scale_up: Option<ScaleUp>,
    placement: Placement,
    messages: bool,
}

impl WorkloadParameters for JobFileSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "job-file",
        title: "a job of a file: GOAL, or Chakra execution traces",
        source: "GOAL: Hoefler, Siebert, Lumsdaine, ICPP 2009; Chakra: mlcommons/chakra",
        validation: "End times of LogGOPSim to the nanosecond without a network (workload/import/tests.rs); \
                     readers are tried with drawn bytes. Not compared: runs on a network.",
        ..SchemeDoc::NONE
    };
    const ENDS_ITSELF: bool = true;
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> JobFileSpec {
        let file_help = "GOAL file, or the first of Chakra's files (trace.0.et) or their prefix; .gz too.";
        let file = p.text("file", None, file_help);
        if file.is_none() {
            p.complain("file", "a job-file needs a file, such as \"job.goal\"".into());
        }
        let groups_help = "Chakra's process groups, as JSON: {\"1\": [0, 1], ...}; none: nodes name none.";
        let messages_help = "Whether every message is a row of flows.parquet. Steps are counted in any case.";
        let machine_help = "With network = \"loggops\": latency L, overhead o, gap g (ns), G and O (ns a byte), and S, the largest \
                            message that does not wait for its receive; or atlahs-ai, atlahs-hpc.";
        let network = p.choice("network", "packets", NETWORKS, "What carries messages.");
        let text = p.text("machine", Some(MACHINE), machine_help).unwrap_or_default();
        let machine = Machine::read(&text).map_err(|message| p.complain("machine", message)).ok();
        if network == "packets" {
            p.without_effect("machine", || "has no effect without network = \"loggops\"".to_string());
        }
        let per_host = seats::ranks_per_host(p);
        let scale_up =
            seats::scale_up(p, per_host, Some("set ranks_per_host too: other ranks have no domain"));
        let order_help =
            "Chakra: nodes that name their stream follow those of the same stream that started before them.";
        let peak_help = "Chakra: 10^12 operations a second by which computations with num_ops take their time, as in ASTRA-sim's \
                         roofline; 0: they take the time that was recorded.";
        let memory_help = "Chakra, with teraflops: rate at which a computation touches the bytes of its tensor_size; auto: no bound.";
        let peak = p.number("teraflops", 0.0, (0.0, 1e9), peak_help);
        let memory = p.rate_or_auto("memory_rate", memory_help);
        if peak == 0.0 {
            p.without_effect("memory_rate", || "has no effect without teraflops".to_string());
        }
        if memory.is_some_and(|rate| rate.0 == 0) {
            p.complain("memory_rate", "must be greater than 0".into());
        }
        let memory = memory.map(|rate| rate.0 as f64 / 8.0);
        JobFileSpec {
            stream_order: p.flag("stream_order", false, order_help),
            roofline: (peak > 0.0).then_some(Roofline { peak: peak * 1e12, memory }),
            per_host,
            scale_up,
            machine: machine.filter(|_| network == "loggops"),
            file,
            format: p.choice("format", "auto", FORMATS, "Format of the file."),
            groups: p.text("groups", Some("none"), groups_help).filter(|groups| groups != "none"),
            send_ends: p.choice("send_ends", "posted", SEND_ENDS, "When a send ends for what waits for it."),
            dependencies: p.choice("dependencies", "data", DEPENDENCIES, "For what nodes of Chakra wait."),
            placement: Placement::read(p, per_host),
            messages: p.flag("messages", true, messages_help),
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let fail = |message: String| WorkloadError::new("file", message);
        let Some(name) = &self.file else { return Err(fail("a job-file needs a file".into())) };
        let format = match self.format {
            "goal" => Some(Format::Goal),
            "chakra" => Some(Format::Chakra),
            _ => None,
        };
        let choices = Choices {
            send_ends: if self.send_ends == "acked" { SendEnds::Acknowledged } else { SendEnds::Posted },
            control: self.dependencies == "data+ctrl",
            stream_order: self.stream_order,
            roofline: self.roofline,
        };
        let groups = self.groups.as_ref().map(|groups| cx.base_dir.join(groups));
        let imported = import::file(&cx.base_dir.join(name), format, groups.as_deref(), &choices);
        let imported = imported.map_err(fail)?;
        imported.assumed.into_iter().for_each(|text| (cx.warn)(format!("{name}: {text}")));
        // LogGOPS names what never ends in its error.
        let stuck = if self.machine.is_none() { import::stuck::problem(&imported.graph) } else { None };
        stuck.into_iter().for_each(|text| (cx.warn)(format!("{name}: {text}")));
        let graph = match self.machine {
            Some(machine) => {
                let lasts = loggops::lasting(&imported.graph, machine);
                lasts.map_err(|message| WorkloadError::new("network", format!("{name}: {message}")))?
            }
            None => match self.scale_up {
                Some(scale_up) => imported.graph.with_domains(self.per_host, scale_up),
                None => imported.graph,
            },
        };
        let ranks = graph.ranks.len();
        let mut hosts = self.placement.ranks(cx)?;
        if hosts.len() < ranks {
            let of = if self.per_host > 1 { "places on its hosts" } else { "hosts" };
            let message = format!("{name} has {ranks} ranks, but the job has {} {of}", hosts.len());
            return Err(WorkloadError::new("hosts", message));
        }
        hosts.truncate(ranks);
        if self.machine.is_none() {
            self.placement.settle(cx, &hosts);
        }
        Ok(Box::new(GraphSource::new(JobGraph {
            hosts,
            seats: Seats { per_host: self.per_host, ..Seats::ALONE },
            flow: FlowSpec { start: window.start, ..cx.flow() },
            recorded: self.messages,
            fresh: false,
            work: Work::Listed(graph),
        })))
    }
}
