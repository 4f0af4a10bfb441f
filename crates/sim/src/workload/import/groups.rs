//! Process groups of Chakra traces: a JSON object of lists of ranks by name, and nothing else.

use rustc_hash::FxHashMap;

/// Reads all groups; the error is the byte at which the text is another one.
pub fn read(text: &str) -> Result<FxHashMap<String, Vec<u32>>, usize> {
    let mut rest = Rest { text, at: 0 };
    let mut groups = FxHashMap::default();
    rest.mark('{')?;
    if rest.has('}') {
        return rest.end().map(|()| groups);
    }
    loop {
        let name = rest.name()?;
        rest.mark(':')?;
        rest.mark('[')?;
        let mut ranks = Vec::new();
        while !rest.has(']') {
            if !ranks.is_empty() {
                rest.mark(',')?;
            }
            ranks.push(rest.number()?);
        }
        groups.insert(name, ranks);
        if rest.has('}') {
            return rest.end().map(|()| groups);
        }
        rest.mark(',')?;
    }
}

struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl Rest<'_> {
    fn left(&mut self) -> &str {
        let left = &self.text[self.at..];
        self.at += left.len() - left.trim_ascii_start().len();
        &self.text[self.at..]
    }

    /// Whether a mark comes next; it is passed.
    fn has(&mut self, mark: char) -> bool {
        let has = self.left().starts_with(mark);
        self.at += usize::from(has);
        has
    }

    fn mark(&mut self, mark: char) -> Result<(), usize> {
        if self.has(mark) { Ok(()) } else { Err(self.at) }
    }

    fn name(&mut self) -> Result<String, usize> {
        self.mark('"')?;
        let left = &self.text[self.at..];
        let length = left.find('"').ok_or(self.at)?;
        let name = left[..length].to_string();
        if name.contains('\\') {
            return Err(self.at);
        }
        self.at += length + 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<u32, usize> {
        let left = self.left();
        let length = left.find(|c: char| !c.is_ascii_digit()).unwrap_or(left.len());
        let number = left[..length].parse();
        let at = self.at;
        self.at += length;
        number.map_err(|_| at)
    }

    fn end(&mut self) -> Result<(), usize> {
        if self.left().is_empty() { Ok(()) } else { Err(self.at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_lists_of_ranks_by_name() {
        let groups = read(" {\"1\": [0, 1],\n \"tp\" : [ ] } ").expect("groups");
        assert_eq!((&groups["1"][..], groups["tp"].len()), (&[0, 1][..], 0));
        assert_eq!(read("{}").map(|groups| groups.len()), Ok(0));
        assert_eq!(read("{\"1\": [0, x]}"), Err(10));
        assert_eq!((read("[]"), read("{} x"), read("{\"1\": [0]")), (Err(0), Err(3), Err(9)));
    }
}
