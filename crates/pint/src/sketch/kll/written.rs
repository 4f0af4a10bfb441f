//! A sketch as bytes.

use super::{Item, Kll, MAX_K, MAX_LENGTH, MIN_K, Sample, level_limit, room, total_room};
use crate::sketch::bytes::{Damaged, Reader, Writer};

const MARK: [u8; 4] = *b"wKLL";
const HAS_ITEMS: u8 = 1;
const HAS_SAMPLE: u8 = 2;

impl<T: Item> Kll<T> {
    /// The sketch as bytes: mark "wKLL", version, bytes per item, flags, floor, k, length, coin, the sampler's item and weight, smallest and
    /// largest, the levels' lengths from the lowest, the items from the top level down, checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(MARK);
        let mut place = Vec::new();
        let mut item = |out: &mut Writer, item: T| {
            place.clear();
            item.write(&mut place);
            out.put(&place);
        };
        out.u8(T::BYTES as u8);
        out.u8(u8::from(self.range.is_some()) * HAS_ITEMS + u8::from(self.sample.is_some()) * HAS_SAMPLE);
        out.u8(self.floor as u8);
        out.u32(self.k);
        out.u64(self.length);
        out.u64(self.coin);
        if let Some(sample) = self.sample {
            item(&mut out, sample.item);
            out.u64(sample.weight);
        }
        if let Some((low, high)) = self.range {
            item(&mut out, low);
            item(&mut out, high);
        }
        out.u8(self.lengths.len() as u8);
        self.lengths.iter().for_each(|&length| out.u32(length));
        self.items.iter().for_each(|&one| item(&mut out, one));
        out.finish()
    }

    /// The sketch of [`Kll::to_bytes`]. Bytes that are cut off, changed, of another kind or of another width of items are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Kll<T>, Damaged> {
        let mut input = Reader::new(bytes, MARK)?;
        if usize::from(input.u8()?) != T::BYTES {
            return Err(Damaged::Contradiction("its items have another width"));
        }
        let (flags, floor, k) = (input.u8()?, u32::from(input.u8()?), input.u32()?);
        let (length, coin) = (input.u64()?, input.u64()?);
        if !(MIN_K..=MAX_K).contains(&k) {
            return Err(Damaged::Contradiction("k is out of range"));
        }
        if length > MAX_LENGTH || floor > 56 || flags > HAS_ITEMS + HAS_SAMPLE {
            return Err(Damaged::Contradiction("its stream exceeds the maximum length"));
        }
        let sample = if flags & HAS_SAMPLE == 0 {
            None
        } else {
            Some(Sample { item: T::read(input.take(T::BYTES)?), weight: input.u64()? })
        };
        let range = if flags & HAS_ITEMS == 0 {
            None
        } else {
            Some((T::read(input.take(T::BYTES)?), T::read(input.take(T::BYTES)?)))
        };
        let levels = usize::from(input.u8()?);
        if levels == 0 || levels > level_limit(k) {
            return Err(Damaged::Contradiction("its number of levels does not fit k"));
        }
        let lengths = (0..levels).map(|_| input.u32()).collect::<Result<Vec<u32>, Damaged>>()?;
        let count = lengths.iter().fold(0usize, |sum, &length| sum.saturating_add(length as usize));
        if count > room(k) {
            return Err(Damaged::Contradiction("it has more items than fit"));
        }
        if input.left() != count * T::BYTES {
            return Err(Damaged::Contradiction("the number of its items is not that of its levels"));
        }
        let items = input.take(count * T::BYTES)?.chunks_exact(T::BYTES).map(T::read).collect();
        let full = total_room(k, levels);
        let sketch = Kll { k, floor, length, coin, sample, range, items, lengths, full };
        sketch.check()?;
        Ok(sketch)
    }

    /// What every sketch keeps true.
    fn check(&self) -> Result<(), Damaged> {
        let wrong = |what| Err(Damaged::Contradiction(what));
        if self.range.is_some() != (self.length > 0) || self.is_empty() != (self.retained() == 0) {
            return wrong("it is both empty and not empty");
        }
        if let Some((low, high)) = self.range {
            let inside = |item: &T| (low..=high).contains(item);
            if low > high || !self.items.iter().chain(self.sample.iter().map(|s| &s.item)).all(inside) {
                return wrong("an item is outside its range");
            }
        }
        if self.sample.is_some_and(|sample| sample.weight == 0 || sample.weight >= 1 << self.floor) {
            return wrong("its sampler holds more than an item");
        }
        let sorted = |level| self.items[self.start(level)..][..self.lengths[level] as usize].is_sorted();
        if !(1..self.lengths.len()).all(sorted) {
            return wrong("a level is not in order");
        }
        let weight = |(level, &length): (usize, &u32)| u128::from(length) << (self.floor + level as u32);
        let total: u128 = self.lengths.iter().enumerate().map(weight).sum();
        // Merged samplers keep weights on average only.
        if total > 2 * u128::from(MAX_LENGTH) || (self.floor == 0 && total != u128::from(self.length)) {
            return wrong("its weights are not those of its stream");
        }
        Ok(())
    }
}
