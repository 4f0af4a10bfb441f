//! The flow file of the HPCC authors' simulator: the number of flows, then `src dst pg dport bytes
//! start_seconds`.
//!
//! Start times are decimal seconds, read as a double and truncated to whole nanoseconds as by that
//! simulator's fixed point, so that "2.001" is 2000999999 ns. Their generator starts at 2 s: if no flow
//! starts earlier, times are relative to that. `pg`, the queue of a flow at every port, and `dport` are not
//! used; a warning names the first flow with another `pg`.

use super::{HostOf, Trace, TraceError, TraceRow, as_text};

/// Start of the authors' generator.
const BASE_NS: u64 = 2_000_000_000;

impl Trace {
    /// Reads a flow file. The authors' generator may leave a stray digit after the number of flows; this is
    /// recognised and reported in `warnings`. Any other wrong number is an error.
    pub fn from_hpcc(bytes: &[u8], file: &str, host: HostOf) -> Result<Trace, TraceError> {
        let text = as_text(bytes, file)?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((_, first)) = lines.next() else {
            let message =
                "empty: expected the number of flows, then \"src dst pg dport bytes start_seconds\"";
            return Err(TraceError::new(file, None, None, message));
        };
        let mut rows = Vec::new();
        for (row, (at, line)) in lines.enumerate() {
            let read = read_flow(line).map_err(|m| TraceError::new(file, Some(at + 1), Some(row), m))?;
            rows.push((at + 1, read));
        }
        let warning = check_count(first.trim(), rows.len())
            .map_err(|message| TraceError::new(file, Some(1), None, message))?;
        let base = if rows.iter().all(|(_, flow)| flow.start_ns >= BASE_NS) { BASE_NS } else { 0 };
        let pg = rows.first().map(|(_, flow)| flow.pg);
        let other = rows.iter().find(|(_, flow)| Some(flow.pg) != pg);
        let priority = other.map(|(line, flow)| {
            format!(
                "{file}:{line}: pg is {} here and {} in the first flow: pg is not used, all flows have one \
                 class; for several, write a file and a workload for each, and the `class` of its transport",
                flow.pg,
                pg.unwrap_or_default()
            )
        });
        let mut trace = Trace::default();
        for (number, (line, flow)) in rows.into_iter().enumerate() {
            let start_ps = (flow.start_ns - base).saturating_mul(1000).min(i64::MAX as u64) as i64;
            let (src, dst, size_bytes) = (flow.src, flow.dst, flow.bytes);
            let row = TraceRow { src, dst, size_bytes, start_ps, ..TraceRow::default() };
            let checked = trace.push(row, host);
            checked.map_err(|m| {
                TraceError::new(file, Some(line), Some(number), m.replace("size_bytes", "bytes"))
            })?;
        }
        trace.warnings.extend(warning.map(|warning| format!("{file}:1: {warning}")));
        trace.warnings.extend(priority);
        trace.not_empty(file)
    }
}

struct Flow {
    src: i64,
    dst: i64,
    pg: i64,
    bytes: i64,
    start_ns: u64,
}

fn read_flow(line: &str) -> Result<Flow, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let &[src, dst, pg, dport, bytes, start] = &fields[..] else {
        let found = fields.len();
        let hint = if found < 6 { ": is the file truncated?" } else { "" };
        return Err(format!("expected \"src dst pg dport bytes start_seconds\", found {found} fields{hint}"));
    };
    let whole = |what: &str, text: &str| -> Result<i64, String> {
        text.parse().map_err(|_| format!("{what}: expected a whole number, found \"{text}\""))
    };
    let pg = whole("pg", pg)?;
    whole("dport", dport)?;
    let seconds = match start.parse::<f64>() {
        // 46 days, far beyond any flow file.
        Ok(seconds) if (0.0..4e6).contains(&seconds) => seconds,
        _ => return Err(format!("start_seconds: expected seconds, found \"{start}\"")),
    };
    let start_ns = nanoseconds(seconds);
    Ok(Flow { src: whole("src", src)?, dst: whole("dst", dst)?, pg, bytes: whole("bytes", bytes)?, start_ns })
}

/// floor(floor(seconds * 2^64) * 1e9 / 2^64), exactly; `seconds` below 2^23.
fn nanoseconds(seconds: f64) -> u64 {
    // Scaling by a power of two is exact, and the cast truncates; 2^23 * 2^64 * 1e9 is below 2^117.
    let fixed = (seconds * 18_446_744_073_709_551_616.0) as u128;
    ((fixed * 1_000_000_000) >> 64) as u64
}

/// A warning if the number in the header has a stray digit, an error if it is wrong otherwise.
fn check_count(first: &str, flows: usize) -> Result<Option<String>, String> {
    let count: u64 = first.parse().map_err(|_| format!("expected the number of flows, found \"{first}\""))?;
    if count == flows as u64 {
        return Ok(None);
    }
    // A smaller number was written over a larger estimate, of which the last digits remain.
    if flows > 0 && first.len() > flows.to_string().len() && first.starts_with(&flows.to_string()) {
        return Ok(Some(format!(
            "{count} flows announced, {flows} found: read as {flows} and a stray digit, a known defect of \
             the generator"
        )));
    }
    let hint = if flows as u64 > count {
        format!("write {flows} in the first line, or remove the lines beyond it")
    } else {
        "is the file truncated?".to_string()
    };
    Err(format!("{count} flows announced, {flows} found: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_to_nanoseconds_as_the_authors_do() {
        assert_eq!(nanoseconds(2.0), 2_000_000_000);
        assert_eq!(nanoseconds(2.001), 2_000_999_999);
        assert_eq!(nanoseconds(2.0001), 2_000_100_000);
        assert_eq!(nanoseconds(0.0), 0);
        assert_eq!(nanoseconds(2.5), 2_500_000_000);
    }
}
