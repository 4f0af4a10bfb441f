//! Flow sizes: distributions given by points of their cumulative distribution function, linear in between.
//!
//! A size is the inverse of the function at a uniform number, truncated to a whole byte and at least one
//! byte, as in the traffic generator of the HPCC authors. A table may count packets instead of bytes (`unit
//! 1460`); then the size is rounded to the nearest packet, as in the generator of the pHost authors.
//!
//! The text format, for built-in tables and users' files: one line per point, `size cumulative`, the
//! cumulative share in percent or as a fraction (determined by the last value, 100 or 1); `#` starts a
//! comment. After a line `steps` only the sizes that follow occur, and none between them.

use crate::engine::random::RandomStream;
use crate::parameters::unknown;

/// Maximum size of a flow: 1 TB, 80 s at 100 Gb/s.
pub const MAX_BYTES: u64 = 1_000_000_000_000;

/// Packets of a flow up to which the mean number of packets is summed term by term: with that, loads in bytes
/// on the wire and the arrivals that follow from them keep their bits.
const COUNTED_PACKETS: u64 = 1_000_000;

const NAMED: &[(&str, &str)] = &[
    ("websearch", include_str!("sizes/websearch.cdf")),
    ("fb-hadoop", include_str!("sizes/fb-hadoop.cdf")),
    ("ali-storage", include_str!("sizes/ali-storage.cdf")),
    ("google-rpc", include_str!("sizes/google-rpc.cdf")),
    ("imc10", include_str!("sizes/imc10.cdf")),
    ("datamining", include_str!("sizes/datamining.cdf")),
    ("w1", include_str!("sizes/w1.cdf")),
    ("w2", include_str!("sizes/w2.cdf")),
    ("w3", include_str!("sizes/w3.cdf")),
    ("w4", include_str!("sizes/w4.cdf")),
    ("w5", include_str!("sizes/w5.cdf")),
];

/// A piecewise linear cumulative distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDistribution {
    /// (size in units, share of flows up to it in parts of `total`); both are non-decreasing, the last share
    /// is `total`.
    points: Vec<(f64, f64)>,
    /// 100 if the table is in percent, 1 if it is in fractions.
    total: f64,
    /// Bytes per unit of the table.
    unit: u64,
}

/// An error in a table of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SizesError {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

impl SizeDistribution {
    /// Returns the built-in table of this name. The error lists the names, the nearest first.
    pub fn named(name: &str) -> Result<SizeDistribution, String> {
        match NAMED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => SizeDistribution::from_text(text, name).map_err(|e| e.to_string()),
            None => Err(unknown("size distribution", name, SizeDistribution::names())),
        }
    }

    /// Names of the built-in tables.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// Title and source of a built-in table: the first two lines of its text.
    pub fn about(name: &str) -> Option<(&'static str, &'static str)> {
        let (_, text) = NAMED.iter().find(|(known, _)| *known == name)?;
        let mut lines = text.lines().map(|line| line.trim_start_matches(['#', ' ']));
        Some((lines.next()?, lines.next()?.trim_start_matches("Source: ")))
    }

    /// All flows have this size; `bytes` must be greater than zero.
    pub fn constant(bytes: u64) -> SizeDistribution {
        SizeDistribution { points: vec![(bytes.max(1) as f64, 1.0)], total: 1.0, unit: 1 }
    }

    /// The mean size, unless all sizes are equal.
    pub fn mean_of_drawn(&self) -> Option<f64> {
        (!self.is_constant()).then(|| self.mean())
    }

    pub fn is_constant(&self) -> bool {
        self.points.len() == 1
    }

    /// Reads a user's file, with arbitrary content.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<SizeDistribution, SizesError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => SizeDistribution::from_text(text, file),
            Err(error) => Err(SizesError {
                file: file.to_string(),
                line: 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count(),
                message: "not text: expected lines of \"size cumulative\"".into(),
            }),
        }
    }

    /// Reads the text format that the module describes.
    pub fn from_text(text: &str, file: &str) -> Result<SizeDistribution, SizesError> {
        let fail = |line: usize, message: String| SizesError { file: file.to_string(), line, message };
        let mut points: Vec<(f64, f64)> = Vec::new();
        let (mut unit, mut steps, mut percent) = (1, false, false);
        let mut last_line = 1;
        for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
            let line = line.split('#').next().unwrap_or("").trim_start_matches('\u{feff}').trim();
            if line.is_empty() {
                continue;
            }
            last_line = number;
            let fields: Vec<&str> =
                line.split([' ', '\t', ',', ';']).filter(|field| !field.is_empty()).collect();
            if let ["unit", bytes] = fields[..] {
                unit = read_unit(bytes, points.is_empty()).map_err(|m| fail(number, m))?;
                continue;
            }
            if fields == ["steps"] {
                steps = true;
                continue;
            }
            let point = read_point(&fields, unit).map_err(|message| fail(number, message))?;
            percent |= fields.iter().any(|field| field.ends_with('%'));
            follows(points.last(), point).map_err(|message| fail(number, message))?;
            if steps {
                points.push((point.0, points.last().map_or(0.0, |last| last.1)));
            }
            points.push(point);
        }
        let total = check_end(points.last(), percent).map_err(|message| fail(last_line, message))?;
        if let Some(last) = points.last_mut() {
            last.1 = total;
        }
        Ok(SizeDistribution { points, total, unit })
    }

    /// Returns a size in bytes, at least 1. Draws one number from the stream.
    pub fn sample(&self, stream: &mut RandomStream) -> u64 {
        self.quantile(stream.uniform())
    }

    /// Returns the size in bytes that the share `p`, from 0 to 1, of all flows does not exceed.
    pub fn quantile(&self, p: f64) -> u64 {
        let wanted = p * self.total;
        // The last share is `total`, so that a point is always found; the bound is for a `p` above 1.
        let i = self.points.partition_point(|point| point.1 < wanted).min(self.points.len() - 1);
        let (size, share) = self.points[i];
        let exact = match i.checked_sub(1).map(|before| self.points[before]) {
            Some((x, y)) if share > y => x + (size - x) / (share - y) * (wanted - y),
            _ => size,
        };
        let units = if self.unit == 1 { exact as u64 } else { exact.round() as u64 };
        units.max(1) * self.unit
    }

    /// Mean of the function in bytes, before truncation to whole bytes.
    pub fn mean(&self) -> f64 {
        let (first_size, first_share) = self.points[0];
        let mut sum = first_size * first_share;
        for pair in self.points.windows(2) {
            sum += (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0;
        }
        sum / self.total * self.unit as f64
    }

    /// Mean of the square, in square bytes.
    pub fn mean_square(&self) -> f64 {
        let (first_size, first_share) = self.points[0];
        let mut sum = first_size * first_size * first_share;
        for pair in self.points.windows(2) {
            let (a, b) = (pair[0].0, pair[1].0);
            sum += (pair[1].1 - pair[0].1) * (a * a + a * b + b * b) / 3.0;
        }
        sum / self.total * (self.unit * self.unit) as f64
    }

    /// Mean number of packets of a flow with `mtu` payload bytes per packet: the sum over k of P(size > k
    /// mtu).
    pub fn mean_packets(&self, mtu: u64) -> f64 {
        let mtu = mtu.max(1);
        if let [(size, _)] = self.points[..] {
            return ((size as u64).saturating_mul(self.unit).div_ceil(mtu)).max(1) as f64;
        }
        let largest = self.points.last().map_or(0.0, |last| last.0);
        let mut packets = 1.0;
        let mut from = 0;
        for k in 1..=COUNTED_PACKETS {
            let min = self.smallest_above(k, mtu);
            if min >= largest {
                return packets;
            }
            while self.points[from].0 <= min {
                from += 1;
            }
            packets += 1.0 - self.share_below(from, min) / self.total;
        }
        packets + self.packets_beyond(COUNTED_PACKETS, mtu)
    }

    /// The number in the table from which on a size is more than `k` packets.
    fn smallest_above(&self, k: u64, mtu: u64) -> f64 {
        let units = (k * mtu) / self.unit + 1;
        // With rounding to the nearest unit, a size counts as `units` from half a unit below.
        if self.unit == 1 { units as f64 } else { units as f64 - 0.5 }
    }

    /// The sum over k > `counted` of P(size > k mtu). Between two points the share below a size is linear, so
    /// that its sum over some k follows from their number and the sum of the sizes.
    fn packets_beyond(&self, counted: u64, mtu: u64) -> f64 {
        let mut first = counted + 1;
        let mut sum = 0.0;
        let (mut x0, mut y0) = (0.0, 0.0);
        for (place, &(x, y)) in self.points.iter().enumerate() {
            let last = self.max_packets_below(x, mtu);
            if last >= first {
                let (n, begin) = (last - first + 1, self.smallest_above(first, mtu));
                let above_begin = floor_sum(n, mtu, first * mtu % self.unit, self.unit) as f64;
                // Below the first point there are no flows.
                let slope = if place == 0 { 0.0 } else { (y - y0) / (x - x0) };
                let below = n as f64 * (y0 + slope * (begin - x0)) + slope * above_begin;
                sum += n as f64 - below / self.total;
                first = last + 1;
            }
            (x0, y0) = (x, y);
        }
        sum
    }

    /// The largest k with [`smallest_above`](Self::smallest_above) less than `size`; 0 if there is none.
    fn max_packets_below(&self, size: f64, mtu: u64) -> u64 {
        let half = if self.unit == 1 { 0.0 } else { 0.5 };
        // Whole units of k packets are less than this.
        let units = (size - 1.0 + half).ceil();
        if units < 1.0 { 0 } else { (units as u64 * self.unit - 1) / mtu }
    }

    /// Share of flows below `size`; `next`: the first point above it.
    fn share_below(&self, next: usize, size: f64) -> f64 {
        let (x, y) = self.points[next];
        match next.checked_sub(1).map(|before| self.points[before]) {
            Some((x0, y0)) => y0 + (y - y0) * (size - x0) / (x - x0),
            None => 0.0,
        }
    }
}

/// The sum over i < `n` of (a i + b) / m, rounded down: lattice points below a line, where m and a take turns
/// as in the greatest common divisor.
fn floor_sum(n: u64, a: u64, b: u64, m: u64) -> u128 {
    let [mut n, mut a, mut b, mut m] = [n, a, b, m].map(u128::from);
    let mut sum = 0;
    while n > 0 {
        // The whole parts of the slope and of the offset count for every i.
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        (a, b) = (a % m, b % m);
        // Rows of points below the rest of the line, which are counted from the other axis.
        let highest = a * n + b;
        (n, b) = (highest / m, highest % m);
        (a, m) = (m, a);
    }
    sum
}

fn read_unit(bytes: &str, first: bool) -> Result<u64, String> {
    if !first {
        return Err("\"unit\" must come before the first point".into());
    }
    match bytes.parse::<u64>() {
        Ok(unit) if (1..=1_000_000).contains(&unit) => Ok(unit),
        _ => Err(format!("expected \"unit\" and a number of bytes from 1 to 1000000, found \"{bytes}\"")),
    }
}

fn read_point(fields: &[&str], unit: u64) -> Result<(f64, f64), String> {
    let &[size, share] = fields else {
        let found = fields.len();
        return Err(format!("expected two numbers, \"size cumulative\", found {found} fields"));
    };
    let number = |text: &str, what: &str| match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
        Ok(_) => Err(format!("{what} \"{text}\": expected a number of at least 0")),
        Err(_) => Err(format!("{what} \"{text}\" is not a number")),
    };
    let size = number(size, "size")?;
    if size > 0.0 && size * (unit as f64) < 1.0 {
        return Err(format!("size {size:e} is below one byte: expected 0, or at least 1"));
    }
    if size * unit as f64 > MAX_BYTES as f64 {
        return Err(format!("size {size} is above the limit of 1 TB"));
    }
    Ok((size, number(share.strip_suffix('%').unwrap_or(share), "cumulative share")?))
}

fn follows(before: Option<&(f64, f64)>, point: (f64, f64)) -> Result<(), String> {
    let Some(&(size, share)) = before else { return Ok(()) };
    if point.0 < size {
        return Err(format!("size {} after {size}: sizes must not decrease", point.0));
    }
    if point.1 < share {
        return Err(format!("cumulative share {} after {share}: it must not decrease", point.1));
    }
    Ok(())
}

/// 100 or 1, from the last point; 100 where shares have a percent sign.
fn check_end(last: Option<&(f64, f64)>, percent: bool) -> Result<f64, String> {
    let Some(&(size, share)) = last else {
        return Err("no points: expected lines of \"size cumulative\"".into());
    };
    if size <= 0.0 {
        return Err("the largest size is zero".into());
    }
    let totals = if percent { &[100.0][..] } else { &[100.0, 1.0] };
    let total = totals.iter().copied().find(|total| (share - total).abs() < total * 1e-9);
    total.ok_or_else(|| match percent {
        true => format!("the last cumulative share is {share}%: expected 100%; is the file truncated?"),
        false => format!("the last cumulative share is {share}: expected 100 (percent) or 1 (fraction)"),
    })
}

#[cfg(test)]
mod tests;
