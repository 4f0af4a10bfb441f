//! Time, bytes and rates as integers, and their text form: "10us", "32MB", "100Gbps".
//!
//! Time is an integer number of picoseconds: at 10 to 800 Gb/s a byte takes a whole number of them, and 64
//! bits suffice for 213 days. KB, MB, GB are powers of ten; KiB, MiB, GiB are powers of two.
//!
//! The one rounding rule: where a transmission time is not a whole number of picoseconds it is rounded *up*,
//! because a packet has not left before its last bit has.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a duration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A data rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(pub u64);

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(u64::MAX);

    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// Whole nanoseconds, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Nanoseconds with fraction: the unit of every result table.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Rate {
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }
    pub fn as_gbps(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time to transmit `bytes` on a link of this rate, rounded up to a whole picosecond;
    /// [`Time::MAX`] if it does not fit.
    pub fn transmission_time(self, bytes: u64) -> Time {
        const PICOBITS: u128 = 8_000_000_000_000;
        u64::try_from((bytes as u128 * PICOBITS).div_ceil(self.0 as u128)).map_or(Time::MAX, Time)
    }

    /// Returns the bytes transmitted in `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Time) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / 8_000_000_000_000) as u64)
    }
}

/// A frequency or a gain over time, in 1/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frequency(pub f64);

/// Why a quantity could not be read. The text states what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(pub String);

const TIME_UNITS: &[(&str, f64)] =
    &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("\u{b5}s", 1e6), ("\u{3bc}s", 1e6), ("ms", 1e9), ("s", 1e12)];
const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const RATE_UNITS: &[(&str, f64)] =
    &[("bps", 1.0), ("Kbps", 1e3), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];

const FREQUENCY_UNITS: &[(&str, f64)] = &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6)];

/// Times and rates are rounded to whole picoseconds and bit/s where that changes them by no more than this share.
const ROUNDED: f64 = 0.01;
/// What the product of a decimal fraction and its unit may be off by in floating point.
const EXACT: f64 = 1e-14;

/// Splits "10.5us" into 10.5 and its factor. The value may be negative or not finite; the caller checks it.
fn quantity(text: &str, what: &str, example: &str, units: &[(&str, f64)]) -> Result<f64, UnitError> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.trim();
    let names =
        || units.iter().map(|(name, _)| *name).filter(|n| n.is_ascii()).collect::<Vec<_>>().join(", ");
    let unreadable =
        || UnitError(format!("expected {what} with its unit such as \"{example}\", found \"{text}\""));
    // As in TOML, an underscore stands between two digits.
    let is_digit =
        |at: Option<usize>| at.and_then(|at| digits.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    if digits.match_indices('_').any(|(at, _)| !is_digit(at.checked_sub(1)) || !is_digit(Some(at + 1))) {
        return Err(unreadable());
    }
    let number: f64 = digits.replace('_', "").parse().map_err(|_| unreadable())?;
    if unit.is_empty() {
        return Err(UnitError(format!(
            "\"{text}\" has no unit: expected {what} such as \"{example}\" (units: {})",
            names()
        )));
    }
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number * factor),
        None => Err(UnitError(format!(
            "unknown unit \"{unit}\" in \"{text}\": expected {what} such as \"{example}\" (units: {})",
            names()
        ))),
    }
}

/// Rounds to whole units; `slack`: the share of the value by which rounding may change it.
fn whole(value: f64, text: &str, what: &str, unit: &str, slack: f64) -> Result<u64, UnitError> {
    if value < 0.0 {
        return Err(UnitError(format!("\"{text}\" is negative: {what} must not be negative")));
    }
    // 2^62, so that two of them can be added.
    if !value.is_finite() || value > 4.6e18 {
        return Err(UnitError(format!("\"{text}\" is too large for {what}")));
    }
    let rounded = value.round();
    // Below the unit in which it is counted, a quantity would become another one.
    if (rounded - value).abs() > value * slack {
        return Err(UnitError(format!(
            "\"{text}\" is not a whole number of {unit}, the smallest unit of {what}: it would become {rounded}{unit}"
        )));
    }
    Ok(rounded as u64)
}

impl std::str::FromStr for Time {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Time, UnitError> {
        whole(quantity(text, "a time", "10us", TIME_UNITS)?, text, "a time", "ps", ROUNDED).map(Time)
    }
}
impl std::str::FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        // Decimal units name every number of bytes. Fractions of binary ones, such as 0.1MiB, are seldom whole.
        let slack = if text.trim_end().ends_with("iB") { ROUNDED } else { EXACT };
        whole(quantity(text, "a size", "32MB", BYTE_UNITS)?, text, "a size", "B", slack).map(Bytes)
    }
}
impl std::str::FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Rate, UnitError> {
        whole(quantity(text, "a rate", "100Gbps", RATE_UNITS)?, text, "a rate", "bps", ROUNDED).map(Rate)
    }
}

impl std::str::FromStr for Frequency {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Frequency, UnitError> {
        Frequency::checked(quantity(text, "a frequency", "0.15Hz", FREQUENCY_UNITS)?, text)
    }
}

impl Frequency {
    /// Up to 1000MHz, more than any use; `text`: as it was written.
    pub fn checked(hertz: f64, text: &str) -> Result<Frequency, UnitError> {
        match (0.0..=1e9).contains(&hertz) {
            true => Ok(Frequency(hertz)),
            false => Err(UnitError(format!("\"{text}\" is out of range: expected 0Hz to 1000MHz"))),
        }
    }
}

/// Writes `value` exactly: in the largest unit in which it has three decimals or fewer, or, where that takes
/// more than four digits before the point, in the largest in which it has nine or fewer.
fn in_units(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter) -> fmt::Result {
    let fits = |decimals: u32| {
        let step = |factor: u64| (factor / 10_u64.pow(decimals)).max(1);
        units.iter().find(move |(_, factor)| value >= *factor && value % step(*factor) == 0)
    };
    let short = fits(3).filter(|(_, factor)| value / factor < 10_000);
    let Some(&(name, factor)) = short.or_else(|| fits(9)) else {
        return write!(f, "{value}{}", units.last().map_or("", |u| u.0));
    };
    let (whole, rest) = (value / factor, value % factor);
    if rest == 0 {
        return write!(f, "{whole}{name}");
    }
    // Units are powers of ten.
    let decimals = format!("{rest:0digits$}", digits = factor.ilog10() as usize);
    write!(f, "{whole}.{}{name}", decimals.trim_end_matches('0'))
}

/// Rounds down to two digits, which is the precision of estimates.
pub fn two_digits(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    number / unit * unit
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let units =
            [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
        in_units(self.0, &units, f)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.0 > 0 && self.0 % 1_048_576 == 0 {
            return write!(f, "{}MiB", self.0 / 1_048_576);
        }
        in_units(self.0, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1)], f)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let units = [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("Kbps", 1_000), ("bps", 1)];
        in_units(self.0, &units, f)
    }
}
impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}Hz", self.0)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests;
