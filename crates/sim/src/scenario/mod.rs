//! Scenarios: TOML text becomes a typed, resolved and checked [`Config`], or every problem that it has.
//!
//! The road of a scenario through these files: [`document`] parses and applies `--set`, [`section`] hands values to the
//! functions that declare them (`network`, `transport`, `switch`, `traffic`, `run`, `failures`, `measure` and
//! the rooms of controllers, topologies and workloads), [`resolve`] writes what is in force. The same functions, run
//! over nothing, give the keys for [`schema`], [`explain`] and [`names`]. Nothing outside this room reads TOML.

mod balancing;
mod bottlenecks;
mod capture;
pub(crate) mod catalogue;
pub(crate) mod check;
mod codes;
mod cut_off;
pub(crate) mod document;
mod failures;
pub(crate) mod host;
mod marking;
pub(crate) mod measure;
mod memo;
pub(crate) mod network;
mod pairs;
pub mod presets;
pub(crate) mod probes;
mod problem;
mod resolve;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod section;
pub(crate) mod switch;
pub(crate) mod telemetry;
#[cfg(test)]
mod tests;
mod traffic;
pub(crate) mod transport;
mod unfit_marks;

use std::collections::BTreeSet;
use std::path::Path;

pub use document::Origin;
pub use problem::{Problem, ScenarioError};
pub use run::{MAX_THREADS, memory_limit};

use crate::compat::Rules;
use crate::config::{Config, Failures, HostConfig, MeasureConfig, SwitchConfig, Until};
use crate::congestion::external::ExternalController;
use crate::external::caught;
use crate::net::loss::LinkLoss;
use crate::parameters::{Source, Value};
use crate::telemetry::TelemetryConfig;
use crate::transport::pairs::{product_of_hosts, spread_product};
use crate::transport::{ReadContext, RunContext, SwitchDefaults, TransportConfig};
use crate::units::{Bytes, Rate, Time};
use crate::workload::Traffic;
use crate::workload::spec::ReadParquet;
use network::Network;
use section::Section;

/// What a scenario may need from outside this crate.
#[derive(Default, Clone, Copy)]
pub struct Hooks<'a> {
    /// Reads traces in Parquet.
    pub read_parquet: Option<ReadParquet<'a>>,
    /// Controllers that a scenario may name as `python:NAME`, in addition to the built-in ones.
    pub controllers: &'a [ExternalController],
}

/// A scenario that can be run.
pub struct Scenario {
    pub name: String,
    pub seed: u64,
    /// As `run.threads`; 0: choose automatically.
    pub threads: usize,
    /// The run is to end when the process holds more memory.
    pub memory: Option<Bytes>,
    /// What deserves a look before the result is trusted.
    pub warnings: Vec<String>,
    /// What `[scale]` asks for, and what was applied.
    pub(crate) scale: scale::Scale,
    pub(crate) resolved: String,
    pub(crate) network: Network,
    pub(crate) switch: SwitchConfig,
    pub(crate) host: HostConfig,
    pub(crate) transports: Vec<TransportConfig>,
    pub(crate) telemetry: TelemetryConfig,
    pub(crate) traffic: Traffic,
    pub(crate) failures: Failures,
    pub(crate) until: Until,
    pub(crate) measure: MeasureConfig,
    pub(crate) rules: Rules,
    pub(crate) memo: bool,
}

impl Scenario {
    /// Reads a scenario. `file` is its name in messages, `base_dir` where its relative paths start; `sets` are the
    /// (path, value) pairs of `--set`, and `seed`, if given, replaces the scenario's.
    ///
    /// Errors: everything that is wrong, in the order of the lines; or which scheme of another crate panicked.
    pub fn load(
        text: &str,
        file: &str,
        base_dir: &Path,
        sets: &[(String, String)],
        seed: Option<u64>,
        hooks: Hooks,
    ) -> Result<Scenario, ScenarioError> {
        let loaded = caught(|| Scenario::load_with(text, file, base_dir, sets, seed, hooks));
        loaded.unwrap_or_else(|panic| {
            Err(ScenarioError::new(vec![Problem::new(file, Origin::Nowhere, "", panic.to_string())]))
        })
    }

    fn load_with(
        text: &str,
        file: &str,
        base_dir: &Path,
        sets: &[(String, String)],
        seed: Option<u64>,
        hooks: Hooks,
    ) -> Result<Scenario, ScenarioError> {
        let mut table = document::parse(text, file).map_err(ScenarioError::new)?;
        let mut problems = Vec::new();
        for (path, value) in sets {
            problems.extend(document::set(&mut table, path, value, file).err());
        }
        if let Some(seed) = seed {
            problems.extend(document::set(&mut table, "seed", &seed.to_string(), file).err());
        }
        let unprintable = document::unprintable(&table, "", file);
        if !unprintable.is_empty() {
            return Err(ScenarioError::new(unprintable));
        }
        let scenario = Scenario::of(&table, file, base_dir, problems, hooks)?;
        let scale = scenario.scale;
        if scale.by == 1 {
            return Ok(scenario);
        }
        let resolved = document::parse(&scenario.resolved, file).map_err(ScenarioError::new)?;
        let scaled = scale::scaled(resolved, &table, scale, file).map_err(ScenarioError::new)?;
        Scenario::of(&scaled, file, base_dir, Vec::new(), hooks)
    }

    /// Reads a scenario that is a table already; `problems`: those of making it.
    fn of(
        table: &document::Table,
        file: &str,
        base_dir: &Path,
        mut problems: Vec<Problem>,
        hooks: Hooks,
    ) -> Result<Scenario, ScenarioError> {
        let before = problems.len();
        let laid = presets::laid(table, file, &mut problems);
        // A section without its preset lacks keys: further problems would only repeat this one.
        if problems.len() > before {
            return Err(ScenarioError::new(problems));
        }
        let mut root = Section::root(laid.as_ref().unwrap_or(table), file);
        let scenario = read(&mut root, file, base_dir, hooks);
        let findings = root.finish();
        problems.extend(findings.problems);
        let mut scenario = match scenario {
            Some(scenario) if problems.is_empty() => scenario,
            _ => return Err(ScenarioError::new(problems)),
        };
        scenario.resolved = resolve::to_toml(&in_order(findings.resolved));
        scenario.warnings = findings.warnings;
        scenario.warnings.extend(check::warnings(&scenario));
        Ok(scenario)
    }

    /// The scenario as TOML with every value in force: running it again gives the same bits.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }

    /// Whether packets can be lost.
    pub(crate) fn can_lose(&self) -> bool {
        self.can_drop() || self.failures.loss.is_some() || !self.failures.events.is_empty()
    }

    /// Whether full queues can drop packets.
    pub(crate) fn can_drop(&self) -> bool {
        let mut queues = self.switch.queues().chain(&self.host.queue);
        !self.switch.pfc.enabled || queues.any(|queue| queue.facts().owns_buffer)
    }

    /// The factor by which `[scale]` makes time slower.
    fn slower(&self) -> u32 {
        self.scale.slower()
    }

    /// The transports over which workloads run, with their numbers, as the first flow of each workload shows: over
    /// `[transport]` none may. All of them where a workload has no flow.
    fn transports_used(&self) -> Vec<(u16, &TransportConfig)> {
        let firsts = self.traffic.sources.iter().map(|source| source.clone_box().next());
        let used: Option<BTreeSet<u16>> = firsts.map(|flow| Some(flow?.transport)).collect();
        let used = used.filter(|used| !used.is_empty());
        let is_used = |index: u16| used.as_ref().is_none_or(|used| used.contains(&index));
        (0..).zip(&self.transports).filter(|&(index, _)| is_used(index)).collect()
    }

    /// What its transports may know about it.
    pub(crate) fn run(&self) -> RunContext<'_> {
        RunContext {
            rules: &self.rules,
            topology: &self.network.topology,
            routes: &self.network.routes,
            longest: Some(&self.network.longest),
            switch: &self.switch,
            telemetry: &self.telemetry,
            transports: &self.transports,
            nic_policy: self.host.nic_policy,
            traffic: Some(&self.traffic),
        }
    }

    /// What the simulator is built from. Errors: none today; kept for what can only be found when a run is built.
    pub fn config(&self) -> Result<Config, ScenarioError> {
        let mut rules = self.rules;
        // Any other balancer takes the hash of a packet for one of its flow.
        rules.murmur_ecmp &= self.switch.balancer.facts().hashes_ports;
        let sources = self.traffic.sources.iter().map(|source| source.clone_box()).collect();
        Ok(Config {
            seed: self.seed,
            topology: self.network.topology.clone(),
            switch: self.switch.clone(),
            host: self.host.clone(),
            transports: self.transports.clone(),
            telemetry: self.telemetry.clone(),
            traffic: Traffic { sources, groups: self.traffic.groups.clone() },
            failures: self.failures.clone(),
            until: self.until,
            measure: self.measure.clone(),
            rules,
            slower: self.slower(),
            memo: self.memo,
        })
    }
}

/// Reads every section, in the order in which they depend on each other. None: something wrong was reported.
fn read(root: &mut Section, file: &str, base_dir: &Path, hooks: Hooks) -> Option<Scenario> {
    let (name, seed) = (name(root, file), seed(root));
    let rules = within(root, "compat", run::read_compat);
    let scale = within(root, "scale", scale::read);
    let network = within(root, "topology", |section| network::read(section, base_dir, &rules));
    let net = network.as_ref();

    let base_rtt = |mtu| net.map_or(Time::ZERO, |network| network.base_rtt(mtu, &rules).0);
    let nic_policy = host::peek_policy(root);
    // The default balancers of transports keep packets with one label on one path, and spread others.
    let balancer = switch::peek_balancer(root);
    let product = |mtu, labelled| {
        let of = |network: &Network| {
            let (base_rtt, mut product) = network.base_rtt(mtu, &rules);
            let spread = balancer.as_ref().map_or(labelled, |balancer| balancer.spreads_flows(labelled));
            if spread && rules.like == "none" {
                product = spread_product(&network.topology, &network.routes, mtu, (base_rtt, product));
            }
            product_of_hosts(nic_policy, &network.topology, (base_rtt, product))
        };
        net.map_or(0, of)
    };
    let host_rate =
        net.and_then(|network| nic_policy.host_rates(&network.topology).pop()).unwrap_or_default();
    let drain = drain(root, net);
    let own = if rules.like == "none" { switch::peek_own_buffers(root) } else { None };
    let waiting = |packet: u64| {
        let rooms = own.iter().flatten().filter_map(|facts| facts.room(packet));
        let limited = rooms.max().filter(|room| room.0 < UNLIMITED);
        slowest(net).zip(limited).map_or(drain, |(rate, room)| rate.transmission_time(room.0))
    };
    let cx = ReadContext {
        rules,
        base_rtt: &base_rtt,
        product: &product,
        host_rate,
        topology: net.map(|network| &network.topology),
        lossless: match root.peek("switch.pfc.enabled") {
            Some(Value::Flag(enabled)) => Some(enabled),
            _ => None,
        },
        drain,
        waiting: &waiting,
        controllers: hooks.controllers,
    };
    let transport =
        within(root, "transport", |section| transport::read(section, &cx).filter(|_| section.is_clean()));
    let mut transports: Vec<TransportConfig> = transport.into_iter().collect();
    // The first of several transports sets the defaults of switches.
    let first = || transports.first().map(|transport| transport.switch_defaults().lossless);
    let cx = ReadContext { lossless: cx.lossless.or_else(first), ..cx };
    let workloads = traffic::read(root, &cx, &mut transports, base_dir);
    let telemetry = within(root, "telemetry", |section| {
        let cx = telemetry::TelemetryContext { rules, seed, base_dir, transports: &transports };
        telemetry::read(section, &cx)
    });

    let failures = within(root, "failures", |section| failures::read(section, net, seed));
    let switch = within(root, "switch", |section| {
        let rates = rates(net, &failures);
        let defaults = transports.first().map_or(SwitchDefaults::LOSSLESS, TransportConfig::switch_defaults);
        let cx = switch::SwitchContext {
            rules,
            defaults,
            rates: &rates,
            topology: net.map(|network| &network.topology),
            classes: workloads.classes(&transports),
        };
        let config = switch::read(section, &cx);
        // Whether switches pause by default is the first transport's to say, which may have been refused.
        if !transports.is_empty() {
            check::headroom_fits(section, net, &config, &transports, &telemetry);
        }
        check::transports_fit(section, net, (&config, nic_policy), &transports, &telemetry, &rules);
        balancing::balancer_serves(section, net, &config);
        config
    });
    let host = within(root, "host", |section| host::read(section, &transports, net, &rules));
    let run =
        within(root, "run", |section| run::read(section, auto_stall(&transports, &host, &failures, net)));
    let measure = within(root, "measure", |section| measure::read(section, net, &rules));
    let traffic = workloads.finish(
        root,
        net,
        &traffic::TrafficContext {
            seed,
            slower: scale.slower(),
            rules,
            base_dir,
            read_parquet: hooks.read_parquet,
            transports: &transports,
            telemetry: &telemetry,
            until: run.until,
        },
    );
    let network = network.filter(|_| !transports.is_empty())?;
    let scenario = Scenario {
        name,
        seed,
        threads: run.threads,
        memory: run.memory,
        warnings: Vec::new(),
        scale,
        resolved: String::new(),
        network,
        switch,
        host,
        transports,
        telemetry,
        traffic,
        failures,
        until: run.until,
        measure,
        rules,
        memo: run.memo,
    };
    for refusal in memo::refusals(&scenario) {
        root.complain("run.memo", refusal);
    }
    Some(scenario)
}

/// Reads the table under `key` by `read`.
fn within<T>(root: &mut Section, key: &str, read: impl FnOnce(&mut Section) -> T) -> T {
    let mut section = root.child(key);
    let result = read(&mut section);
    root.absorb(key, section);
    result
}

/// `name`, which also names the folder of the results; the file's name where it is not given.
fn name(root: &mut Section, file: &str) -> String {
    const LONGEST: usize = 100;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario");
    let stem: String = stem.chars().map(|c| if plain(c) { c } else { '-' }).take(LONGEST).collect();
    let help = "name of the run and of its folder; default: the name of the file";
    let name = root.parameters().text("name", Some(&stem), help).unwrap_or_default();
    let fits = !name.is_empty() && name.chars().count() <= LONGEST && name.chars().all(plain);
    if !fits || name.starts_with('.') {
        let message = format!(
            "expected a name of 1 to {LONGEST} letters, digits, '-', '_', '.' or spaces, because it becomes part of a folder's name"
        );
        root.complain("name", message);
    }
    name
}

fn seed(root: &mut Section) -> u64 {
    let help = "seed of every random stream, and of the hashes that choose paths and queues; another seed gives other flows, \
                paths and marks";
    root.parameters().integer("seed", 1, (0, i64::MAX), help) as u64
}

/// The time in which the slowest link empties a switch's buffer. Looks ahead at `[switch]`, whose defaults depend on the transport; what
/// is wrong there is reported there.
fn drain(root: &Section, net: Option<&Network>) -> Time {
    let buffer = match root.peek("switch.buffer") {
        Some(Value::Text(text)) => text.parse().unwrap_or(switch::DEFAULT_BUFFER),
        _ => switch::DEFAULT_BUFFER,
    };
    slowest(net).map_or(Time::ZERO, |rate| rate.transmission_time(buffer.0))
}

/// Bytes of queues beyond which they have no limit.
const UNLIMITED: u64 = 1 << 40;

fn slowest(net: Option<&Network>) -> Option<Rate> {
    let rates = net?.topology.links.iter().map(|link| link.rate);
    rates.min().filter(|rate| rate.0 > 0)
}

/// Distinct rates of links, those that they take by failures included, ascending.
fn rates(network: Option<&Network>, failures: &Failures) -> Vec<Rate> {
    let links = network.into_iter().flat_map(|network| network.topology.links.iter().map(|link| link.rate));
    let mut rates: Vec<Rate> = links.chain(failures::rates(failures)).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

/// Long enough that no retransmission is pending: ten timeouts at their longest backoff, twenty round trips,
/// and at least 100 ms; twice the time between two messages of an application; and that hosts have processed
/// a thousand packets. Where links lose packets at random, one flow of a million would be given up; that TCP's
/// timeouts double is not counted.
fn auto_stall(
    transports: &[TransportConfig],
    host: &HostConfig,
    failures: &Failures,
    network: Option<&Network>,
) -> Time {
    let longest =
        transports.iter().map(|transport| transport.facts().longest_timeout).max().unwrap_or(Time::ZERO);
    // Timeouts that follow measured round trips are longer than these, and a handshake takes one before
    // anything is delivered.
    let round_trip = network.map_or(Time::ZERO, |network| network.base_rtt(0, &Rules::none()).0);
    let longest = longest.max(Time(round_trip.0.saturating_mul(2)));
    let rounds = failures.loss.zip(network).map_or(10, |(loss, network)| {
        // Two packets and their answers (a request and its grant, data and their acknowledgement) arrive over the longest path.
        let over = |kind| loss.arrives(kind, f64::from(network.diameter()));
        let (data, control) = (over(LinkLoss::DATA), over(LinkLoss::ACKNOWLEDGEMENTS));
        let arrive = data * control * data.min(control).powi(2);
        (1e-6f64.ln() / (-arrive).ln_1p()).ceil().clamp(10.0, 10_000.0) as u64
    });
    let writers = transports.iter().filter_map(|transport| transport.facts().applications[0]);
    let pause = writers.map(|pace| pace.rate.transmission_time(pace.ahead)).max().unwrap_or(Time::ZERO);
    let quiet = Time(longest.0.saturating_mul(rounds)).max(Time(pause.0.saturating_mul(2)));
    let processed = Time(host.packet_time.0.saturating_mul(1000));
    Time::from_ms(100).max(quiet).saturating_add(processed)
}

/// The sections of the resolved scenario in the order in which people write them.
fn in_order(mut resolved: Vec<(String, Value)>) -> Vec<(String, Value)> {
    const ORDER: &[&str] = &[
        "name",
        "seed",
        "scale",
        "topology",
        "switch",
        "host",
        "transport",
        "telemetry",
        "workload",
        "run",
        "compat",
        "failures",
        "measure",
    ];
    resolved.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
    resolved
}

/// A relative path to an existing file is kept as an absolute one, so that the resolved scenario can be run from
/// any folder.
fn keep_path(section: &mut Section, key: &str, base_dir: &Path) {
    let Some(Value::Text(given)) = section.resolved(key) else { return };
    let path = base_dir.join(given);
    if let (true, Ok(absolute)) = (path.is_file(), std::path::absolute(&path)) {
        if let Some(text) = absolute.to_str() {
            section.resolve(key, Value::Text(text.to_string()));
        }
    }
}
