//! The memory of this machine, of the container that it is, and what this process may take of it.

use crate::units::Bytes;

/// How much there is, and how much of it a program may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub total: Bytes,
    pub left: Bytes,
}

/// The machine's memory, but not more than the address space of this process may hold. None where the system does not say.
pub fn memory() -> Option<Memory> {
    let file = |name: &str| std::fs::read_to_string(name).ok();
    let of_group = |name: &str| file(&format!("/sys/fs/cgroup/memory.{name}")).unwrap_or_default();
    let group = [of_group("max"), of_group("current"), of_group("stat")];
    let machine = read(&file("/proc/meminfo")?, &group)?;
    Some(match address_space() {
        Some(space) => Memory { total: machine.total.min(space.total), left: machine.left.min(space.left) },
        None => machine,
    })
}

/// The address space of this process, if it has a limit (RLIMIT_AS, `ulimit -v`); an allocation beyond it fails, and ends the
/// program.
pub fn address_space() -> Option<Memory> {
    let file = |name: &str| std::fs::read_to_string(name).ok();
    space(&file("/proc/self/limits")?, &file("/proc/self/status")?)
}

/// From /proc/self/limits and /proc/self/status.
fn space(limits: &str, status: &str) -> Option<Memory> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let total: u64 = limit.split_whitespace().next()?.parse().ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used = size.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)?;
    Some(Memory { total: Bytes(total), left: Bytes(total.saturating_sub(used)) })
}

/// From /proc/meminfo, and from what a control group allows (`max`), what it holds (`current`), and of what
/// kinds that is (`stat`): pages of files are given back when memory is short.
fn read(machine: &str, [max, current, stat]: &[String; 3]) -> Option<Memory> {
    let kilobytes = |key: &str| -> Option<u64> {
        let line = machine.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let (total, left) = (kilobytes("MemTotal")?, kilobytes("MemAvailable")?);
    let Ok(limit) = max.trim().parse::<u64>() else {
        return Some(Memory { total: Bytes(total), left: Bytes(left) });
    };
    let of_files = |line: &str| {
        let (key, bytes) = line.split_once(' ')?;
        ["active_file", "inactive_file"].contains(&key).then(|| bytes.parse::<u64>().ok())?
    };
    let files: u64 = stat.lines().filter_map(of_files).sum();
    let held = current.trim().parse::<u64>().unwrap_or(0).saturating_sub(files);
    Some(Memory { total: Bytes(total.min(limit)), left: Bytes(left.min(limit.saturating_sub(held))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_address_space_counts_if_there_is_one() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max address space         1536000000           unlimited            bytes\n";
        let status = "VmPeak:\t  400000 kB\nVmSize:\t  300000 kB\n";
        let found = Memory { total: Bytes(1_536_000_000), left: Bytes(1_536_000_000 - 300_000 * 1024) };
        assert_eq!(space(limits, status), Some(found));
        assert_eq!(space(&limits.replace("1536000000 ", "unlimited  "), status), None);
        assert_eq!(space(limits, "VmSize:\t 9000000 kB\n").map(|space| space.left), Some(Bytes(0)));
    }

    #[test]
    fn a_container_has_what_its_group_allows() {
        let machine = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    9000000 kB\n";
        let found = |max: &str, current: &str, stat: &str| {
            let memory = read(machine, &[max, current, stat].map(String::from)).expect("numbers");
            (memory.total.0, memory.left.0)
        };
        let all = (16_000_000 * 1024, 9_000_000 * 1024);
        assert_eq!(found("", "", ""), all);
        assert_eq!(found("max\n", "5\n", ""), all);
        assert_eq!(found("4000000000\n", "1000000000\n", ""), (4_000_000_000, 3_000_000_000));
        let stat = "anon 1\nactive_file 300000000\ninactive_file 200000000\n";
        assert_eq!(found("4000000000\n", "1000000000\n", stat), (4_000_000_000, 3_500_000_000));
        assert_eq!(found("4000000000\n", "9000000000\n", ""), (4_000_000_000, 0));
        assert_eq!(read("MemTotal: x kB", &Default::default()), None);
    }
}
