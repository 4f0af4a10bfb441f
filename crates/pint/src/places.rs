//! The codes of small values, looked up: for a switch in software that writes the same few values again and again.

use crate::value::{Approximation, Place};

/// Where the values from 0 on lie among the codes of an approximation.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    places: Box<[Entry]>,
    limit: u64,
}

/// The code, and below which coin (in units of 2^-32) it is the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Entry {
    code: u32,
    below: u32,
}

impl Entry {
    /// None if the code is too large for it.
    fn of(place: Place) -> Option<Entry> {
        let code = u32::try_from(place.code).ok().filter(|&code| code < u32::MAX)?;
        let below = (u128::from(place.part) << 32).div_ceil(u128::from(place.whole.max(1)));
        match u32::try_from(below) {
            Ok(below) => Some(Entry { code, below }),
            Err(_) => Some(Entry { code: code + 1, below: 0 }),
        }
    }
}

impl Places {
    /// Of the values below `count`, or fewer where codes leave 32 bits.
    pub fn of(values: &Approximation, count: u64) -> Places {
        let places = (0..count).map_while(|v| Entry::of(values.place(v))).collect();
        Places { places, limit: values.limit() }
    }

    /// The place of a value; None if it is not listed.
    #[inline]
    pub fn get(&self, v: u64) -> Option<Listed> {
        let Entry { code, below } = *self.places.get(usize::try_from(v).ok()?)?;
        Some(Listed { code: u64::from(code), below, limit: self.limit })
    }
}

/// A value's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Listed {
    code: u64,
    below: u32,
    limit: u64,
}

impl Listed {
    /// As [`Approximation::raise`].
    #[inline]
    pub fn raise(self, now: u64, coin: impl FnOnce() -> u32) -> u64 {
        if self.code < now {
            return now;
        }
        let up = self.below > 0 && coin() < self.below;
        (self.code + u64::from(up)).min(self.limit).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Rounding;
    use proptest::prelude::*;

    #[test]
    fn values_beyond_the_list_are_not_answered() {
        let places = Places::of(&Approximation::exact(8).unwrap(), 10);
        assert_eq!(places.get(9).map(|place| place.raise(3, || 0)), Some(9));
        assert_eq!(places.get(10), None);
        let wide = Places::of(&Approximation::additive(2, 32, Rounding::Value).unwrap(), 5);
        let three = wide.get(3).unwrap();
        assert_eq!((three.raise(0, || u32::MAX), three.raise(0, || 0)), (1, 2));
    }

    proptest! {
        #[test]
        fn looked_up_codes_are_the_computed_ones(now in 0u64..300, v in 0u64..2_048, coin: u32, kind in 0usize..6) {
            let roundings = [Rounding::Nearest, Rounding::Value, Rounding::Logarithm];
            let values = match kind {
                0..=2 => Approximation::from_base(1.05, 8, roundings[kind]),
                3 | 4 => Approximation::additive(7, 6, roundings[kind - 3]),
                _ => Approximation::exact(9),
            }
            .unwrap();
            let places = Places::of(&values, 2_048);
            let looked_up = places.get(v).map(|place| place.raise(now, || coin));
            prop_assert_eq!(looked_up, Some(values.raise(now, v, || coin)));
            prop_assert_eq!(values.raise(now, v, || coin), values.encode(v, coin).max(now));
        }
    }
}
