//! What the tests share: a sandbox with a loaded object, random numbers, what a run of a program cost.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use weftline_dataplane::kernel::{Context, Object, Program, Sandbox, Statistics, Wire, run};

/// Packets of a comparison.
pub fn rounds() -> u32 {
    std::env::var("WEFTLINE_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

fn object_path(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target =
        target.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")));
    target.join("bpf").join(format!("{name}.bpf.o"))
}

/// A sandbox with an object in it; None, with the reason printed, where that cannot be had.
pub fn load(name: &str) -> Option<(Sandbox, Object)> {
    let path = object_path(name);
    let loaded = || -> io::Result<(Sandbox, Object)> {
        if !path.exists() {
            return Err(io::Error::other(format!("no {}: run `make lab-objects`", path.display())));
        }
        let sandbox = Sandbox::enter()?;
        let object = sandbox.load(&path)?;
        Ok((sandbox, object))
    };
    match loaded() {
        Ok(loaded) => Some(loaded),
        Err(reason) if std::env::var_os("WEFTLINE_LAB").is_none() => {
            println!("skipped: {reason}");
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

/// Pairs of interfaces `p0` and `q0`, `p1` and `q1` on: what leaves by one arrives at the other. The numbers of the `p`s.
pub fn pairs(sandbox: &Sandbox, count: usize) -> Vec<u32> {
    let pair = |n: usize| -> io::Result<u32> {
        sandbox.ip(&format!("link add p{n} type veth peer name q{n}"))?;
        for name in [format!("p{n}"), format!("q{n}")] {
            // No neighbour discovery among our packets.
            sandbox.ip(&format!("link set {name} addrgenmode none"))?;
            sandbox.ip(&format!("link set {name} up"))?;
        }
        sandbox.interface(&format!("p{n}"))
    };
    (0..count).map(|n| pair(n).unwrap()).collect()
}

/// Sends `frames` frames of `bytes` bytes by interface `p{n}`, whose rate is so low that they stay in its queue.
pub fn hold(n: usize, interface: u32, frames: usize, bytes: usize) {
    let words = format!("qdisc add dev p{n} root tbf rate 8bit burst 1600 limit 200000");
    run(Command::new("tc").args(words.split_whitespace())).unwrap();
    let wire = Wire::open(interface, 0x88b6).unwrap();
    let frame: Vec<u8> = [2; 12].into_iter().chain([0x88, 0xb6]).chain(vec![0; bytes - 14]).collect();
    (0..frames).for_each(|_| wire.send(&frame).unwrap());
}

/// Bytes in the queue of interface `p{n}`, as `tc` tells.
pub fn backlog(n: usize) -> u64 {
    counter(n, "backlog")
}

/// Bytes that have left that queue.
pub fn transmitted(n: usize) -> u64 {
    counter(n, "bytes")
}

fn counter(n: usize, key: &str) -> u64 {
    let shown = run(Command::new("tc").args(["-s", "-j", "qdisc", "show", "dev", &format!("p{n}")])).unwrap();
    let after = shown.split(&format!("\"{key}\":")).nth(1).unwrap();
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Prints the cost of one packet in a program: the smallest of several means, less the cost of a program that leaves the packet as it
/// is (one on `lo`, outside the switch). Each run is timed by itself and starts from a fresh packet.
pub fn cost(name: &str, program: &Program, packet: &[u8], context: &Context) {
    const RUNS: u64 = 20_000;
    let _statistics = Statistics::on().unwrap();
    let mean = |context: &Context| {
        let mut shortest = u64::MAX;
        for _ in 0..5 {
            let before = program.time().unwrap();
            for _ in 0..RUNS {
                program.run(packet, context, 1).unwrap();
            }
            let after = program.time().unwrap();
            shortest = shortest.min((after.0 - before.0) / (after.1 - before.1).max(1));
        }
        shortest
    };
    let (all, nothing) = (mean(context), mean(&Context { interface: 1, ..*context }));
    let (instructions, bytes) = program.size().unwrap();
    println!(
        "cost: {name}: {} ns (timed {all}, of which the clock {nothing}), {instructions} instructions, {bytes} B of machine code",
        all.saturating_sub(nothing)
    );
}

/// Random numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(::pint::hash::GOLDEN);
        ::pint::hash::mix(self.0)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Of any size up to that number of bits.
    pub fn scaled(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        if bits == 0 { 0 } else { self.word() >> (64 - bits) }
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.word() as u8);
    }
}
