//! Process groups of Chakra traces: a JSON object of lists of ranks by name, and nothing else; or the list of
//! groups in PyTorch's metadata, of which the name and the ranks are read.

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
        groups.insert(name, rest.ranks()?);
        if rest.has('}') {
            return rest.end().map(|()| groups);
        }
        rest.mark(',')?;
    }
}

/// The groups in the text of a node of PyTorch's metadata, a list within other text; none: there is no such list.
pub fn named(text: &str) -> Option<Vec<(String, Vec<u32>)>> {
    let text = text.replace("\\\"", "\"");
    let (begin, end) = (text.find("[{")?, text.rfind("}]")?);
    let mut rest = Rest { text: text.get(begin..end + 2)?, at: 0 };
    let mut groups = Vec::new();
    rest.mark('[').ok()?;
    loop {
        groups.push(rest.group()?);
        if rest.has(']') {
            return rest.end().ok().map(|()| groups);
        }
        rest.mark(',').ok()?;
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

    fn ranks(&mut self) -> Result<Vec<u32>, usize> {
        self.mark('[')?;
        let mut ranks = Vec::new();
        while !self.has(']') {
            if !ranks.is_empty() {
                self.mark(',')?;
            }
            ranks.push(self.number()?);
        }
        Ok(ranks)
    }

    /// A group with its name and ranks, and keys that are not read.
    fn group(&mut self) -> Option<(String, Vec<u32>)> {
        let (mut name, mut ranks) = (None, None);
        self.mark('{').ok()?;
        loop {
            let key = self.name().ok()?;
            self.mark(':').ok()?;
            match key.as_str() {
                "pg_name" if self.left().starts_with('"') => name = self.name().ok(),
                "pg_name" => name = self.number().ok().map(|number| number.to_string()),
                "ranks" => ranks = self.ranks().ok(),
                _ if self.left().starts_with('"') => drop(self.name().ok()?),
                _ if self.left().starts_with('[') => drop(self.ranks().ok()?),
                // A number, or a word.
                _ => self.at += self.left().find([',', '}'])?,
            }
            if self.has('}') {
                return name.zip(ranks);
            }
            self.mark(',').ok()?;
        }
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
        let inner = "['[{\"pg_name\": \"3\", \"n\": 2, \"x\": null, \"ranks\": [0, 2]}, {\"ranks\": [], \"pg_name\": 4}]']";
        let both = Some(vec![("3".to_string(), vec![0, 2]), ("4".to_string(), Vec::new())]);
        assert_eq!((named(inner), named(&inner.replace('"', "\\\""))), (both.clone(), both));
        assert_eq!(
            (named("pg_name"), named("[{\"pg_name\": 1}]"), named("[{\"ranks\": [1")),
            (None, None, None)
        );
        assert_eq!((read("[]"), read("{} x"), read("{\"1\": [0]")), (Err(0), Err(3), Err(9)));
    }
}
