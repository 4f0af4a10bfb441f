//! A look at a Parquet file's footer before the decoder takes memory for what it announces.
//!
//! The footer holds the schema as a list of elements, each with the number of its children. The decoder reserves memory for that
//! number before it looks for the children, so that one damaged byte can ask for more than there is and end the process.
//!
//! Source: Apache Parquet, `parquet.thrift` (FileMetaData: field 2, schema; SchemaElement: field 5, num_children); Apache
//! Thrift, "Thrift Compact protocol".

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Length of the metadata, then "PAR1".
const TAIL_BYTES: u64 = 8;
/// Structures within structures; Parquet's own have a handful.
const DEEPEST: u32 = 16;

/// Whether the schema in the footer of `file` can be what it says; a footer that cannot be found is left to the decoder.
/// The file's position is at its start afterwards.
pub fn is_sound(file: &mut File) -> std::io::Result<bool> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut sound = true;
    if length >= TAIL_BYTES {
        let mut tail = [0; TAIL_BYTES as usize];
        file.seek(SeekFrom::Start(length - TAIL_BYTES))?;
        file.read_exact(&mut tail)?;
        let [a, b, c, d, magic @ ..] = tail;
        let metadata = u64::from(u32::from_le_bytes([a, b, c, d]));
        if &magic == b"PAR1" && metadata <= length - TAIL_BYTES {
            file.seek(SeekFrom::Start(length - TAIL_BYTES - metadata))?;
            let mut bytes = Vec::new();
            file.take(metadata).read_to_end(&mut bytes)?;
            sound = Compact { rest: &bytes }.schema_is_sound().unwrap_or(false);
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(sound)
}

/// Types of the compact protocol.
mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

/// What is left of a message in the compact protocol. None anywhere: it is damaged.
struct Compact<'b> {
    rest: &'b [u8],
}

impl Compact<'_> {
    /// Whether the elements of the schema (field 2) have no more children than there are elements.
    fn schema_is_sound(&mut self) -> Option<bool> {
        let mut field = 0;
        while let Some((id, kind)) = self.field(&mut field)? {
            if id == 2 && kind == kind::LIST {
                let (elements, kind) = self.list()?;
                let mut children = 0u64;
                for _ in 0..elements {
                    children += self.children(kind)?;
                }
                return Some(children < elements.max(1));
            }
            self.skip(kind, 0)?;
        }
        Some(true)
    }

    /// The number of children (field 5) of one element of the schema.
    fn children(&mut self, kind: u8) -> Option<u64> {
        if kind != kind::STRUCT {
            return None;
        }
        let (mut field, mut children) = (0, 0);
        while let Some((id, kind)) = self.field(&mut field)? {
            if id == 5 && kind == kind::I32 {
                children = u64::try_from(self.signed()?).ok()?;
            } else {
                self.skip(kind, 0)?;
            }
        }
        Some(children)
    }

    /// The next field of a structure, its id counted from `last`; none within: the structure ends.
    fn field(&mut self, last: &mut i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *last = match head >> 4 {
            0 => self.signed()?,
            step => last.checked_add(i64::from(step))?,
        };
        Some(Some((*last, head & 15)))
    }

    /// How many entries of which kind a list has.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let entries = match head >> 4 {
            15 => self.unsigned()?,
            few => u64::from(few),
        };
        Some((entries, head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => self.take(1)?,
            kind::I16 | kind::I32 | kind::I64 => drop(self.unsigned()?),
            kind::DOUBLE => self.take(8)?,
            kind::BINARY => {
                let length = self.unsigned()?;
                self.take(length)?;
            }
            kind::LIST | kind::SET => {
                let (entries, kind) = self.list()?;
                for _ in 0..entries {
                    self.skip_entry(kind, depth + 1)?;
                }
            }
            kind::MAP => {
                let entries = self.unsigned()?;
                let kinds = if entries > 0 { self.byte()? } else { 0 };
                for _ in 0..entries {
                    self.skip_entry(kinds >> 4, depth + 1)?;
                    self.skip_entry(kinds & 15, depth + 1)?;
                }
            }
            kind::STRUCT => {
                let mut field = 0;
                while let Some((_, kind)) = self.field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// As a field, but that a truth value takes a byte.
    fn skip_entry(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            kind::TRUE | kind::FALSE => self.take(1),
            kind => self.skip(kind, depth),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Seven bits a byte, the lowest first.
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Zigzag: 0, -1, 1, -2, ...
    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests;
