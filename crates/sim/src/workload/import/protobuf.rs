//! The wire format of protocol buffers, as far as it is needed to read messages: fields by number, unknown
//! ones skipped.
//!
//! Source: protobuf.dev, "Encoding".

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wire<'b> {
    Varint(u64),
    Eight([u8; 8]),
    Bytes(&'b [u8]),
    Four([u8; 4]),
}

/// Reads the fields of a message. Places are counted from the beginning of the file.
pub struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Where `bytes` begins in the file.
    base: usize,
}

/// What is wrong, and at which byte of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub at: usize,
    pub message: String,
}

impl<'b> Fields<'b> {
    pub fn new(bytes: &'b [u8], base: usize) -> Fields<'b> {
        Fields { bytes, at: 0, base }
    }

    fn wrong(&self, at: usize, message: impl Into<String>) -> Wrong {
        Wrong { at: self.base + at, message: message.into() }
    }

    /// Where the next field begins, in the file.
    pub fn place(&self) -> usize {
        self.base + self.at
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// A number of at most ten bytes, low seven bits first.
    pub fn varint(&mut self) -> Result<u64, Wrong> {
        let begin = self.at;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(self.wrong(begin, "the data end within a number"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong(begin, "a number of more than ten bytes"))
    }

    pub fn take(&mut self, count: u64) -> Result<&'b [u8], Wrong> {
        let rest = &self.bytes[self.at..];
        let count = usize::try_from(count).ok().filter(|&count| count <= rest.len());
        let Some(count) = count else {
            let message = format!("the data end {} bytes later, within a field", rest.len());
            return Err(self.wrong(self.at, message));
        };
        self.at += count;
        Ok(&rest[..count])
    }

    /// The next field: its number, where its value begins in the file, and the value.
    pub fn next(&mut self) -> Result<Option<(u64, usize, Wire<'b>)>, Wrong> {
        if self.is_empty() {
            return Ok(None);
        }
        let begin = self.at;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => (self.place(), Wire::Varint(self.varint()?)),
            1 => (self.place(), Wire::Eight(fixed(self.take(8)?))),
            2 => {
                let count = self.varint()?;
                (self.place(), Wire::Bytes(self.take(count)?))
            }
            5 => (self.place(), Wire::Four(fixed(self.take(4)?))),
            other => return Err(self.wrong(begin, format!("unknown wire type {other}"))),
        };
        Ok(Some((key >> 3, value.0, value.1)))
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    all
}

impl Wire<'_> {
    /// Numbers of a repeated field, packed or single.
    pub fn numbers(self, place: usize, to: &mut Vec<u64>) -> Result<(), Wrong> {
        match self {
            Wire::Varint(number) => to.push(number),
            Wire::Bytes(bytes) => {
                let mut packed = Fields::new(bytes, place);
                while !packed.is_empty() {
                    to.push(packed.varint()?);
                }
            }
            Wire::Eight(_) | Wire::Four(_) => {}
        }
        Ok(())
    }
}
